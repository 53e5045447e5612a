-- Stores new jobs. The statement skips jobs whose id is taken, and returns their ids.
-- $1 uuid[] ids, sorted   $2 text[] queues   $3 text[] tenants   $4 smallint[] priorities
-- An array without a value for any job may be empty.
-- $5 text[] keys ('': none)   $7 text[] labels as JSON ('': none)   $8 smallint[] max_attempts (0: the queue's)
-- $9 timestamptz[] due_at (null: now)   $10 interval[] delays, from the beginning of the statement   $11 timestamptz[] expires_at
-- $12 boolean[] keyed   $13 uuid[] blocked_by   $14 boolean[] whether to audit the job
-- $15 integer[] where each payload begins, from 1   $16 integer[] its length   $17 boolean[] whether the job waits in its tenant queue
-- $18 text[] order keys ('': none)   $19 bigint[] places   $20 text[] after, each as an array's text ('': none)   $21 text[] after_failure ('': none)
-- $22 bigint[] timeouts in ms (0: none)
-- $23 uuid[] batches, which are open and locked (null: none)
-- $24 text[] limit keys ('': none)
-- $25 integer[] costs (0: 1)
-- $6 text[] the queues that were stored when their settings were read (null: none); if a queue is gone, the statement stores
-- nothing and returns a null
-- $26 bytea the payloads, one after the other: the last argument, because the driver copies its buffer when the buffer grows
with given as (
    select g.*, substr($26::bytea, g.begins, g.length) as payload
    from unnest($1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::text[], $7::text[], $8::smallint[], $9::timestamptz[],
                $10::interval[], $11::timestamptz[], $12::boolean[], $13::uuid[], $14::boolean[], $15::integer[], $16::integer[], $17::boolean[],
                $18::text[], $19::bigint[], $20::text[], $21::text[], $22::bigint[], $23::uuid[], $24::text[], $25::integer[])
        as g(id, queue, tenant, priority, key, labels, max_attempts, due_at, delay, expires_at, keyed, blocked_by, audited, begins, length, in_tenant_queue,
             order_key, order_place, after, after_failure, timeout_ms, batch_id, limit_key, cost)
    where (select count(*) from sluice.queue q where q.name = any ($6::text[])) = coalesce(cardinality($6::text[]), 0)
), stored as (
    insert into sluice.job (id, queue, tenant, priority, key, payload, labels, max_attempts, expires_at, order_key, order_place, after, after_failure, timeout_ms, batch_id, limit_key, cost)
    select id, queue, coalesce(tenant, ''), priority, nullif(key, ''), payload, nullif(labels, '')::jsonb, nullif(max_attempts, 0), expires_at,
           nullif(order_key, ''), nullif(order_place, 0), nullif(after, '')::uuid[], nullif(after_failure, ''), nullif(timeout_ms, 0), batch_id, nullif(limit_key, ''), nullif(cost, 0)
    from given
    on conflict (id) do nothing
    returning id
), waiting as (
    insert into sluice.live (id, queue, tenant, priority, due_at, expires_at, keyed, blocked_by, in_tenant_queue, order_key, order_place, batch_id, limit_key, cost)
    select g.id, g.queue, coalesce(g.tenant, ''), g.priority, coalesce(g.due_at, statement_timestamp() + nullif(g.delay, '0'), now()), g.expires_at,
           coalesce(g.keyed, false), g.blocked_by, coalesce(g.in_tenant_queue, false) and g.blocked_by is null,
           nullif(g.order_key, ''), nullif(g.order_place, 0), g.batch_id, nullif(g.limit_key, ''), coalesce(nullif(g.cost, 0), 1)
    from given g join stored s on s.id = g.id
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, due_at)
    select g.queue, coalesce(g.tenant, ''), bit_or(1 << g.priority),
           min(coalesce(g.due_at, statement_timestamp() + nullif(g.delay, '0'), now()))
    from given g join stored s on s.id = g.id
    where g.in_tenant_queue and g.blocked_by is null
    group by 1, 2
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select g.batch_id, 'total', count(*) from given g join stored s on s.id = g.id where g.batch_id is not null group by g.batch_id
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, to_state)
    select 'producer', 'job', g.queue, 'enqueue', g.id, 1, 'queued'
    from given g join stored s on s.id = g.id
    where g.audited
)
select g.id from given g where not exists (select from stored s where s.id = g.id)
union all
select null where not exists (select from given)

-- Stores new jobs of one batch, which is open and locked. Nobody has used their ids before, and their queues do not
-- serve their tenants in turns. It costs a quarter less than enqueue. If an id is taken, it fails, and the caller uses
-- enqueue in another transaction.
-- $1 to $17 as of enqueue_new
-- $18 uuid the batch
with given as (
    select g.*, substr($17::bytea, g.begins, g.length) as payload
    from unnest($1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::text[], $7::text[], $8::smallint[], $9::timestamptz[],
                $10::interval[], $11::timestamptz[], $12::boolean[], $13::uuid[], $14::boolean[], $15::integer[], $16::integer[])
        as g(id, queue, tenant, priority, key, labels, max_attempts, due_at, delay, expires_at, keyed, blocked_by, audited, begins, length)
    where (select count(*) from sluice.queue q where q.name = any ($6::text[])) = coalesce(cardinality($6::text[]), 0)
), stored as (
    insert into sluice.job (id, queue, tenant, priority, key, payload, labels, max_attempts, expires_at, batch_id)
    select id, queue, coalesce(tenant, ''), priority, nullif(key, ''), payload, nullif(labels, '')::jsonb, nullif(max_attempts, 0), expires_at, $18::uuid
    from given
), waiting as (
    insert into sluice.live (id, queue, tenant, priority, due_at, expires_at, keyed, blocked_by, batch_id)
    select g.id, g.queue, coalesce(g.tenant, ''), g.priority, coalesce(g.due_at, statement_timestamp() + nullif(g.delay, '0'), now()), g.expires_at,
           coalesce(g.keyed, false), g.blocked_by, $18::uuid
    from given g
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select $18::uuid, 'total', count(*) from given having count(*) > 0
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, to_state)
    select 'producer', 'job', g.queue, 'enqueue', g.id, 1, 'queued'
    from given g
    where g.audited
)
select null::uuid where not exists (select from given)

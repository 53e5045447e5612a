-- Hands jobs back to their queue: retry, release and recover. The token stays on the row, so that a repeated settlement
-- is recognized. When the jobs are due, a claim puts them into tenant queues again.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 text[] states the event may leave   $4 text event
-- $5 interval[] delays (null: due_at stays)   $6 text[] errors   $7 text[] stacks   $8 text[] reasons   $9 text[] by whom
-- $10 text the counter to raise: attempt, release or recovery   $11 boolean only where the lease ran out and no run is intended
-- $12 boolean whether every queue audits the event, and not only queues with audit = 'full'
-- The server plans this statement without knowing the number of ids. The series makes the server expect many ids; else
-- it would compare each given row with each found row.
with given as (
    select * from rows from (unnest($1::uuid[], $2::uuid[], $5::interval[], $6::text[], $7::text[], $8::text[], $9::text[]), generate_series(1, cardinality($1::uuid[])))
        as g(id, token, delay, error, stack, reason, actor, place)
), held as materialized (
    select l.id, l.queue, l.tenant, l.in_tenant_queue, l.state, l.generation, l.attempts, l.holder, l.claimed_at, g.error, g.stack, g.reason, g.actor
    from given g
    join sluice.live l on l.id = g.id
    where l.id = any ($1::uuid[]) and l.token = g.token and coalesce(l.state = any ($3::text[]), false) and (not $11::boolean or l.lease_until < now() and l.engine is null)
    order by g.place
    for update of l
), back as (
    update sluice.live l
    set state = 'queued', in_tenant_queue = false, holder = null, ref = null, engine = null, claimed_at = null, dispatched_at = null, lease_until = null,
        attempts = l.attempts + ($10::text = 'attempt')::integer,
        releases = l.releases + ($10::text = 'release')::integer,
        recoveries = l.recoveries + ($10::text = 'recovery')::integer,
        due_at = coalesce(now() + g.delay, l.due_at),
        error = coalesce(g.error, l.error)
    from given g
    where l.id = g.id and l.id = any (array(select id from held))
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from held where in_tenant_queue and state in ('claimed', 'dispatched')
), noted as (
    insert into sluice.attempt (job_id, generation, attempt, claimed_at, holder, error, stack)
    select id, generation, attempts + 1, claimed_at, holder, coalesce(error, ''), stack
    from held
    where $10::text = 'attempt'
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason)
    select coalesce(h.actor, h.holder, ''), 'job', h.queue, $4::text, h.id, h.generation, h.state, 'queued', coalesce(h.reason, '')
    from held h
    where $12::boolean or h.queue in (
        select q.name from (select distinct queue from held) o join sluice.queue q on q.name = o.queue where q.audit = 'full'
    )
)
select id, queue, state from held

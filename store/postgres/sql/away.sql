-- Moves claimed jobs that leave their holder unfinished: dispatch and doubt.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 text[] states the event may leave   $4 text event   $5 text state it leads to
-- $6 text[] refs   $7 text[] errors   $8 text[] reasons   $9 text[] by whom
-- $10 boolean whether every queue audits the event, and not only queues with audit = 'full'
-- The server plans this statement without knowing the number of ids. The series makes the server expect many ids; else
-- it would compare each given row with each found row.
with given as (
    select * from rows from (unnest($1::uuid[], $2::uuid[], $6::text[], $7::text[], $8::text[], $9::text[]), generate_series(1, cardinality($1::uuid[])))
        as g(id, token, ref, error, reason, actor, place)
), held as materialized (
    select l.id, l.queue, l.tenant, l.in_tenant_queue, l.state, l.generation, l.holder, g.reason, g.actor
    from given g
    join sluice.live l on l.id = g.id
    where l.id = any ($1::uuid[]) and l.token = g.token and coalesce(l.state = any ($3::text[]), false)
    order by g.place
    for update of l
), away as (
    update sluice.live l
    set state = $5::text, lease_until = null, ref = coalesce(g.ref, l.ref), error = coalesce(g.error, l.error),
        dispatched_at = case when $5::text = 'dispatched' then now() else l.dispatched_at end
    from given g
    where l.id = g.id and l.id = any (array(select id from held))
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from held where $5::text = 'uncertain' and in_tenant_queue and state in ('claimed', 'dispatched')
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason)
    select coalesce(h.actor, h.holder, ''), 'job', h.queue, $4::text, h.id, h.generation, h.state, $5::text, coalesce(h.reason, '')
    from held h
    where $10::boolean or h.queue in (
        select q.name from (select distinct queue from held) o join sluice.queue q on q.name = o.queue where q.audit = 'full'
    )
)
select id, queue, state from held

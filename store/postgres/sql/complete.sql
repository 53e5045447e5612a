-- Completes one job inside a transaction of its holder. The statement does the work of end.sql for one job. Most jobs
-- then need no second statement, and planning takes a third of the time. See also key_free and unblock. A program that
-- is too old for the schema completes nothing.
-- $1 uuid id   $2 uuid token   $3 text[] states the event may leave   $4 bytea result   $5 integer the newest schema step that the program knows
with gone as (
    delete from sluice.live
    where id = $1::uuid and token = $2::uuid and coalesce(state = any ($3::text[]), false)
      and not exists (select from sluice.migration where works_from > $5::integer)
    returning *
), put as (
    insert into sluice.done (id, generation, queue, tenant, outcome, due_at, claimed_at, dispatched_at, attempts, releases, recoveries,
                             token, holder, ref, result, error)
    select id, generation, queue, tenant, 'completed', due_at, claimed_at, dispatched_at, attempts, releases, recoveries,
           token, holder, ref, $4::bytea, error
    from gone
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from gone where in_tenant_queue and state in ('claimed', 'dispatched')
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select batch_id, 'completed', count(*) from gone where batch_id is not null group by batch_id
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state)
    select coalesce(g.holder, ''), 'job', g.queue, 'complete', g.id, g.generation, g.state, 'completed'
    from gone g
    where exists (select from sluice.queue q where q.name = g.queue and q.audit = 'full')
)
select keyed, blocked_by, exists (select from sluice.awaited a where a.queue = gone.queue) from gone

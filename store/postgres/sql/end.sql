-- Ends claimed jobs whose tokens match: complete and bury. The statement moves each job from live to done, stores the
-- failed attempt and audits the move. A row with another token or none stays as it is. Acts of persons use end_act.sql.
-- For a job that is buried as poison, the statement records a run that may exist as an orphan run. Then key_free
-- follows for jobs with a key, and unblock for jobs of awaited queues. The coalesce keeps the planner from the
-- statistics of state, which changes faster than its statistics.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens
-- $3 text[] states the event may leave   $4 text event   $5 text outcome
-- $6 bytea[] results   $7 text[] errors   $8 text[] stacks   $9 text[] reasons   $10 text[] by whom
-- $11 text the counter to raise: attempt, recovery or nothing   $12 boolean only where the lease ran out and no run is intended
-- $13 boolean whether every queue audits the event, and not only queues with audit = 'full'
-- $14 boolean whether to be brief: if all jobs ended, the rows are the jobs that need key_free or unblock, and one row without an id
-- The server plans this statement without knowing the number of ids. The series makes the server expect many ids; else
-- it would compare each given row with each found row.
with given as (
    select * from rows from (unnest($1::uuid[], $2::uuid[], $6::bytea[], $7::text[], $8::text[], $9::text[], $10::text[]), generate_series(1, cardinality($1::uuid[])))
        as g(id, token, result, error, stack, reason, actor)
), gone as (
    delete from sluice.live l
    using given g
    where l.id = g.id and l.id = any ($1::uuid[]) and l.token = g.token
      and coalesce(l.state = any ($3::text[]), false)
      and (not $12::boolean or l.lease_until < now() and l.engine is null)
    returning l.id, l.queue, l.tenant, l.state, l.due_at, l.generation, l.releases, l.token, l.holder, l.claimed_at, l.dispatched_at, l.ref,
              l.engine, l.keyed, l.blocked_by, l.in_tenant_queue, l.batch_id, l.limit_key, l.cost, g.result, g.stack, g.reason, g.actor, coalesce(g.error, l.error) as error,
              l.attempts + ($11::text = 'attempt' and l.state <> 'uncertain')::integer as attempts,
              l.recoveries + ($11::text = 'recovery')::integer as recoveries
), put as (
    insert into sluice.done (id, generation, queue, tenant, outcome, due_at, claimed_at, dispatched_at, attempts, releases, recoveries,
                             token, holder, ref, result, error)
    select id, generation, queue, tenant, $5::text, due_at, claimed_at, dispatched_at, attempts, releases, recoveries,
           token, holder, ref, result, error
    from gone
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from gone where in_tenant_queue and state in ('claimed', 'dispatched')
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select batch_id, $5::text, count(*) from gone where batch_id is not null group by batch_id
), noted as (
    insert into sluice.attempt (job_id, generation, attempt, claimed_at, holder, error, stack)
    select id, generation, attempts, claimed_at, holder, coalesce(error, ''), stack
    from gone
    where $11::text = 'attempt' and state <> 'uncertain'
), strayed as (
    insert into sluice.orphan_run (job_id, queue, tenant, generation, engine, ref, claimed_at, started, limit_key, cost)
    select id, queue, tenant, generation, engine, ref, claimed_at, state = 'dispatched', limit_key, cost
    from gone where $11::text = 'recovery' and engine is not null and ref is not null
    on conflict (job_id, ref) do nothing
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason)
    select coalesce(g.actor, g.holder, ''), 'job', g.queue, $4::text, g.id, g.generation, g.state, $5::text, coalesce(g.reason, '')
    from gone g
    where $13::boolean or g.queue in (
        select q.name from (select distinct queue from gone) o join sluice.queue q on q.name = o.queue where q.audit = 'full'
    )
), whole as (
    select $14::boolean and count(*) = cardinality($1::uuid[]) as audited from gone
)
select id, queue, state, keyed, blocked_by, awaited
from (select g.*, g.queue in (select a.queue from sluice.awaited a) as awaited from gone g) e, whole
where keyed or awaited or not whole.audited
union all
select null, '', '', false, null, false from whole where audited

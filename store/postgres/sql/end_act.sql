-- Ends jobs without a token, by an act of a person or of Sluice: cancel, and complete or bury for uncertain jobs. The
-- statement moves each job from live to done, records a run of a cancelled job as an orphan run, and audits the move.
-- It counts no attempt. Then key_free follows for jobs with a key, and unblock for jobs of awaited queues.
-- $1 uuid[] ids, sorted   $2 text[] states the act may leave   $3 text event   $4 text outcome
-- $5 text[] errors   $6 text[] reasons   $7 text[] by whom   $8 uuid act   $9 boolean whether every queue audits the event, and not only queues with audit = 'full'
with given as (
    select * from rows from (unnest($1::uuid[], $5::text[], $6::text[], $7::text[]), generate_series(1, cardinality($1::uuid[]))) as g(id, error, reason, actor)
), gone as (
    delete from sluice.live l
    using given g
    where l.id = g.id and l.id = any ($1::uuid[]) and coalesce(l.state = any ($2::text[]), false)
    returning l.id, l.queue, l.tenant, l.state, l.due_at, l.generation, l.attempts, l.releases, l.recoveries, l.token, l.holder,
              l.claimed_at, l.dispatched_at, l.ref, l.engine, l.keyed, l.blocked_by, l.in_tenant_queue, l.batch_id, l.limit_key, l.cost, g.reason, g.actor, coalesce(g.error, l.error) as error
), put as (
    insert into sluice.done (id, generation, queue, tenant, outcome, due_at, claimed_at, dispatched_at, attempts, releases, recoveries,
                             token, holder, ref, error)
    select id, generation, queue, tenant, $4::text, due_at, claimed_at, dispatched_at, attempts, releases, recoveries,
           token, holder, ref, error
    from gone
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from gone where in_tenant_queue and state in ('claimed', 'dispatched')
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select batch_id, $4::text, count(*) from gone where batch_id is not null group by batch_id
), strayed as (
    insert into sluice.orphan_run (job_id, queue, tenant, generation, engine, ref, claimed_at, started, limit_key, cost)
    select id, queue, tenant, generation, engine, ref, claimed_at, state = 'dispatched', limit_key, cost
    from gone where $3::text = 'cancel' and engine is not null and ref is not null
    on conflict (job_id, ref) do nothing
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, act_id)
    select coalesce(g.actor, g.holder, ''), 'job', g.queue, $3::text, g.id, g.generation, g.state, $4::text, coalesce(g.reason, ''), $8::uuid
    from gone g
    where $9::boolean or g.queue in (
        select q.name from (select distinct queue from gone) o join sluice.queue q on q.name = o.queue where q.audit = 'full'
    )
)
select g.id, g.queue, g.state, g.keyed, g.blocked_by, g.queue in (select a.queue from sluice.awaited a) as awaited from gone g

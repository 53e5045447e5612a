-- Deletes jobs in flight whose row in sluice.job somebody deleted. No worker could run or follow such jobs, and they
-- would use up limits. The statement records a run that may exist as an orphan run, which counts as in flight until its
-- engine reports the end. The job's batch counts the job as cancelled. The audit gets an entry for each job. Returns
-- the number of deleted jobs.
-- $1 uuid[] ids   $2 uuid the token that the jobs must have (null: any)   $3 text by whom
with gone as (
    delete from sluice.live l
    where l.id = any ($1::uuid[]) and l.state in ('claimed', 'dispatched') and ($2::uuid is null or l.token = $2::uuid)
      and not exists (select from sluice.job j where j.id = l.id)
    returning l.id, l.queue, l.tenant, l.generation, l.state, l.engine, l.ref, l.claimed_at, l.in_tenant_queue, l.batch_id, l.limit_key, l.cost
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from gone where in_tenant_queue
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select batch_id, 'cancelled', count(*) from gone where batch_id is not null group by batch_id
), strayed as (
    insert into sluice.orphan_run (job_id, queue, tenant, generation, engine, ref, claimed_at, started, limit_key, cost)
    select id, queue, tenant, generation, engine, ref, claimed_at, state = 'dispatched', limit_key, cost
    from gone where engine is not null and ref is not null
    on conflict (job_id, ref) do nothing
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, reason)
    select $3::text, 'job', queue, 'job missing', id, generation, 'somebody deleted its row in sluice.job'
    from gone
)
select count(*) from gone

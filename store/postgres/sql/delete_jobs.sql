-- Deletes finished jobs by the act of a person, with all their lives and failed attempts.
-- $1 uuid[] ids, sorted   $2 text[] outcomes that may be deleted   $3 text by whom   $4 text reason   $5 uuid act
with old as materialized (
    select d.id, d.queue, d.generation, d.outcome
    from sluice.done d
    where d.id = any ($1::uuid[]) and d.outcome = any ($2::text[]) and d.requeued_at is null
      and not exists (select from sluice.live l where l.id = d.id and l.id = any ($1::uuid[]))
    order by d.id
    for update
), lives as (
    delete from sluice.done d using old o where d.id = o.id and d.id = any ($1::uuid[])
), attempts as (
    delete from sluice.attempt a using old o where a.job_id = o.id and a.job_id = any ($1::uuid[])
), forgotten as (
    -- Every transaction that deletes from job_after locks its rows in the order of job_id, then after_id.
    delete from sluice.job_after
    where ctid = any (array(
        select a.ctid from sluice.job_after a where a.job_id = any (array(select id from old))
        order by a.job_id, a.after_id
        for update))
), jobs as (
    delete from sluice.job j using old o where j.id = o.id and j.id = any ($1::uuid[])
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, act_id)
    select $3::text, 'job', queue, 'delete', id, generation, outcome, outcome, $4::text, $5::uuid from old
)
select id, queue, outcome from old

-- Marks runs of ended jobs, so that upkeep ends them by force, and audits each mark.
-- $1 uuid[] jobs   $2 text by whom   $3 text reason   $4 uuid act
with found as materialized (
    select s.job_id, s.ref, s.queue from sluice.orphan_run s
    where s.job_id = any ($1::uuid[])
    order by s.job_id, s.ref
    for update
), marked as (
    update sluice.orphan_run s set terminate = true
    from found f
    where s.job_id = f.job_id and s.ref = f.ref and s.job_id = any ($1::uuid[]) and not s.terminate
    returning s.job_id, s.queue, s.generation, s.engine, s.ref
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, reason, after, act_id)
    select $2::text, 'job', m.queue, 'terminate', m.job_id, m.generation, $3::text,
           jsonb_build_object('engine', m.engine, 'ref', m.ref), $4::uuid
    from marked m
)
select distinct job_id, queue, '' from found

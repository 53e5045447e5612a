-- Lets jobs run beside their own runs that may be open, as a person asked, and audits each run. The statement skips
-- jobs that live, because they are not requeued, except uncertain jobs.
-- $1 uuid[] jobs   $2 text by whom   $3 text reason   $4 uuid act
with found as materialized (
    select s.job_id, s.ref, s.queue from sluice.orphan_run s
    where s.job_id = any ($1::uuid[]) and (select true from sluice.job j where j.id = s.job_id)
      and (select true from sluice.live l where l.id = s.job_id and l.state <> 'uncertain') is null
    order by s.job_id, s.ref
    for update
), marked as (
    update sluice.orphan_run s set beside = true
    from found f
    where s.job_id = f.job_id and s.ref = f.ref and s.job_id = any ($1::uuid[]) and not s.beside
    returning s.job_id, s.queue, s.generation, s.engine, s.ref
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, reason, after, act_id)
    select $2::text, 'job', m.queue, 'beside open run', m.job_id, m.generation, $3::text,
           jsonb_build_object('engine', m.engine, 'ref', m.ref), $4::uuid
    from marked m
)
select job_id, queue, '' from marked

-- Notes the run of a job that is about to be cancelled, if one may exist.
-- ?1 seq   ?2 now
insert into sluice_stray_run (job_id, queue, engine, ref, cancelled_at)
select run_of, queue, engine, ref, ?2 from sluice_live where seq = ?1 and engine is not null and ref is not null
on conflict (job_id, ref) do nothing

-- Lets a job run beside its own runs that may be open.
-- ?1 job
update sluice_orphan_run set beside = 1 where job_id = ?1 and not beside returning queue, generation, engine, ref

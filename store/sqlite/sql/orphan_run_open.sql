-- Returns whether a run of a job may be open, unless somebody lets the job run beside it.
-- ?1 job
select exists (select 1 from sluice_orphan_run where job_id = ?1 and not beside)

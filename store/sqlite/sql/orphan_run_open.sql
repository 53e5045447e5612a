-- Whether a run of a job may be open that nobody has let the job run beside.
-- ?1 job
select exists (select 1 from sluice_orphan_run where job_id = ?1 and not beside)

-- Whether somebody holds a job.
-- ?1 job
select exists (select 1 from sluice_hold where job_id = ?1)

-- Returns whether an act has already changed a job.
-- ?1 act id   ?2 job id
select exists (select 1 from sluice_audit where act_id = ?1 and job_id = ?2)

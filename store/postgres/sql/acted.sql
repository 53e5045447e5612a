-- The jobs that an act has already done its work on.
-- $1 uuid act
select job_id from sluice.audit where act_id = $1::uuid and job_id is not null

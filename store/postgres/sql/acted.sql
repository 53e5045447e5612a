-- Lists the jobs that an act has already changed.
-- $1 uuid act
select job_id from sluice.audit where act_id = $1::uuid and job_id is not null

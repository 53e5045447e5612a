-- Forgets the holds of jobs that have ended, and returns for which job each waited otherwise.
-- $1 uuid[] ids
delete from sluice.hold where job_id = any ($1::uuid[]) returning job_id, behind

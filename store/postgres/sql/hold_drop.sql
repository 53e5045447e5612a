-- Deletes the holds of jobs that have ended, and returns the job that each would wait for without its hold.
-- $1 uuid[] ids
delete from sluice.hold where job_id = any ($1::uuid[]) returning job_id, behind

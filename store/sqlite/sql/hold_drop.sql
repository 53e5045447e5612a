-- Deletes the hold of a job, and returns it.
-- ?1 job
delete from sluice_hold where job_id = ?1 returning job_id, queue, reason, actor, held_at, behind

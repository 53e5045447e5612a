-- Reads the queue and the key of a job.
-- ?1 seq
select queue, key from sluice_job where seq = ?1

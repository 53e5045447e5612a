-- Frees the key of a job that has ended.
-- ?1 seq of the job
delete from sluice_job_key
where (queue, key) in (select queue, key from sluice_job where seq = ?1)
  and job_id = (select id from sluice_job where seq = ?1) and until is null

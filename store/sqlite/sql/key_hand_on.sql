-- Hands the key of a job that has ended to the job it waited for.
-- ?1 seq of the job   ?2 seq of the other
update sluice_job_key
set job_id = (select id from sluice_job where seq = ?2)
where (queue, key) in (select queue, key from sluice_job where seq = ?1)
  and job_id = (select id from sluice_job where seq = ?1) and until is null

-- Hands the key of a job that has ended to the job it waited for, if that is its twin.
-- ?1 seq of the job   ?2 seq of the other
update sluice_job_key
set job_id = (select id from sluice_job where seq = ?2)
where (queue, key) in (select e.queue, e.key from sluice_job e join sluice_job o on o.queue = e.queue and o.key = e.key
                       where e.seq = ?1 and o.seq = ?2)
  and job_id = (select id from sluice_job where seq = ?1) and until is null

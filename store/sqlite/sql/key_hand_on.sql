-- Hands the key of an ended job on to the job that it waited for, if that job is its twin.
-- ?1 seq of the ended job   ?2 seq of the other job
update sluice_job_key
set job_id = (select id from sluice_job where seq = ?2)
where (queue, key) in (select e.queue, e.key from sluice_job e join sluice_job o on o.queue = e.queue and o.key = e.key
                       where e.seq = ?1 and o.seq = ?2)
  and job_id = (select id from sluice_job where seq = ?1) and until is null

-- Deletes keys whose window has passed.
-- ?1 now   ?2 limit
delete from sluice_job_key
where (queue, key) in (select queue, key from sluice_job_key where until < ?1 limit ?2 + 0)

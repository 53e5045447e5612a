-- Returns the id of a job if the job is stored in a queue.
-- ?1 id
-- ?2 queue
select id from sluice_job where id = ?1 and queue = ?2

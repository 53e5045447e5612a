-- Finds the stored jobs among the jobs that another job is to run after, with their queues and whether each has
-- completed.
-- ?1 ids as a JSON array of hexadecimal texts
select j.id, j.queue, exists (select 1 from sluice_done d where d.seq = j.seq and d.outcome = 'completed')
from json_each(?1) given
cross join sluice_job j on j.id = unhex(given.value)

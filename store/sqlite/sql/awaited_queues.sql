-- Lists the queues of the unfinished jobs of a list.
-- ?1 ids as a JSON array of hexadecimal texts
select distinct l.queue
from json_each(?1) given
join sluice_job j on j.id = unhex(given.value)
join sluice_live l on l.seq = j.seq

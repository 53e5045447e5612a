-- Lists the queues and groups that share a limit, by name, along the index sluice_queue_limits.
-- ?1 name of the limit
select name
from sluice_queue
where limits <> '' and instr(',' || limits || ',', ',' || ?1 || ',') > 0
order by name

-- The processes that beat within the last hour.
select id, role, queues, slots, busy, version, started, seen, trouble, counts
from sluice.holder
where seen > now() - interval '1 hour'
order by id

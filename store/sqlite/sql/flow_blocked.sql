-- Counts the blocked jobs of each queue: those that wait for an earlier job of their order key, and the rest. One walk
-- covers all queues and stops at the limit.
-- ?1 limit
select queue, ordered, count(*)
from (select queue, order_key is not null as ordered from sluice_live where blocked_by is not null limit ?1 + 0)
group by queue, ordered

-- How many blocked jobs of each queue wait for an earlier one of their order key, and how many for another. One walk for
-- all queues, which stops at the limit.
-- ?1 limit
select queue, ordered, count(*)
from (select queue, order_key is not null as ordered from sluice_live where blocked_by is not null limit ?1 + 0)
group by queue, ordered

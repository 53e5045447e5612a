-- How many blocked jobs of each queue wait for an earlier one of their order key, and how many for another. One walk for
-- all queues, which stops at the limit.
-- $1 integer limit
select blocked.queue, blocked.ordered, count(*)
from (select l.queue, l.order_key is not null as ordered from sluice.live l where l.blocked_by is not null limit $1::integer) blocked
group by blocked.queue, blocked.ordered

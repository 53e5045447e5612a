-- Counts the blocked jobs of each queue: those that wait for an earlier job of their order key, and the rest. One walk
-- covers all queues and stops at the limit.
-- $1 integer limit
select blocked.queue, blocked.ordered, count(*)
from (select l.queue, l.order_key is not null as ordered from sluice.live l where l.blocked_by is not null limit $1::integer) blocked
group by blocked.queue, blocked.ordered

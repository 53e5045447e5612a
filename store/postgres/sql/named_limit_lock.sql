-- Locks the limits that a queue shares, in the order of names, until the claim has been committed. Claims of queues that share a
-- limit follow each other. A statement that waits for a lock has read the clock before; so another one reads the limits.
-- $1 text[] names
select f.queue
from sluice.named_limit n
join sluice.flow f on f.queue = '@' || n.name
where n.name = any ($1::text[])
order by n.name collate "C"
for update of f

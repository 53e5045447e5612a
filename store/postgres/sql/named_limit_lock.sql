-- Locks the limits that a queue shares, sorted by name, until the claim commits. So claims of queues that share a limit
-- run one after the other. A statement that waits for a lock has read the clock before, so named_limit_read.sql reads
-- the limits.
-- $1 text[] names
select f.queue
from sluice.named_limit n
join sluice.flow f on f.queue = '@' || n.name
where n.name = any ($1::text[])
order by n.name collate "C"
for update of f

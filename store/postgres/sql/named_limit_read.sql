-- The limits that a queue shares, by name, and what claims have left of their rates, after named_limit_lock.sql has locked them.
-- $1 text[] names
select n.name, n.closed, n.closed_until, n.rate, n.rate_per_ms, n.burst, n.concurrency, n.version, f.tokens, f.filled_at, f.claimed_at, clock_timestamp(),
       f.permits_from, f.clock_ahead_us, n.per_key, n.by_cost
from sluice.named_limit n
join sluice.flow f on f.queue = '@' || n.name
where n.name = any ($1::text[])
order by n.name collate "C"

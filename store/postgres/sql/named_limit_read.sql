-- Reads the limits that a queue shares and the tokens of their rates, by name. It runs after named_limit_lock.sql.
-- $1 text[] names
select n.name, n.closed, n.closed_until, n.rate, n.rate_per_ms, n.burst, n.concurrency, n.version, f.tokens, f.filled_at, f.claimed_at, clock_timestamp(),
       f.permits_from, f.clock_ahead_us, n.per_key, n.by_cost
from sluice.named_limit n
join sluice.flow f on f.queue = '@' || n.name
where n.name = any ($1::text[])
order by n.name collate "C"

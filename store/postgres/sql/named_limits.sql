-- Lists limits that queues share with the tokens of their rates, by name.
-- $1 text[] names, null: all
select n.name, n.concurrency, n.rate, n.rate_per_ms, n.burst, n.closed, n.closed_until, n.version, n.changed_at, n.changed_by, n.reason,
       coalesce(f.tokens, 0), f.filled_at, f.permits_from, clock_timestamp(), n.per_key, n.by_cost
from sluice.named_limit n
left join sluice.flow f on f.queue = '@' || n.name
where $1::text[] is null or n.name = any ($1::text[])
order by n.name

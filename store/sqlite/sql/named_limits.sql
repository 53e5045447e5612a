-- Lists limits that queues share with the tokens of their rates, by name.
-- ?1 names as a JSON array, or null: all
select n.name, n.concurrency, n.rate, n.rate_per_ms, n.burst, n.closed, n.closed_until, n.version, n.changed_at, n.changed_by, n.reason, f.tokens, f.filled_at, n.per_key, n.by_cost
from sluice_named_limit n
left join sluice_flow f on f.queue = '@' || n.name
where ?1 is null or n.name in (select value from json_each(?1))
order by n.name

-- Lists the queues with the tokens of their rates, and how many tenants have as much in flight as they may.
-- $1 integer the most tenant queues to read of each queue
select q.name, now(), q.rate, q.rate_per_ms, q.burst, f.tokens, f.filled_at,
    q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0 or exists (select from sluice.tenant_limit t where t.queue in (q.name, '') and t.given),
    q.tenant_concurrency, q.tenant_rate, q.tenant_rate_per_ms, q.tenant_burst,
    (select count(*) from (select l.at_limit from sluice.tenant_queue l where l.queue = q.name limit $1::integer) tenant_queue where tenant_queue.at_limit)
from sluice.queue q
left join sluice.flow f on f.queue = q.name
order by q.name

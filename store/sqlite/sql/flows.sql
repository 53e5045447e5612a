-- Lists the queues with the tokens of their rates, and how many tenants have as much in flight as they may.
-- ?1 the most tenants to count of each queue
select q.name, q.rate, q.rate_per_ms, q.burst, f.tokens, f.filled_at,
    q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0 or exists (select 1 from sluice_tenant_limit t where t.queue in (q.name, '') and t.given),
    q.tenant_concurrency, q.tenant_rate, q.tenant_rate_per_ms, q.tenant_burst,
    (select count(*) from (select 1 from sluice_tenant_queue l where l.queue = q.name and l.at_limit = 1 limit ?1 + 0))
from sluice_queue q
left join sluice_flow f on f.queue = q.name
order by q.name

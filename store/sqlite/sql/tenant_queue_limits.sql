-- Lists the limits that may apply to tenants in a queue, the nearest first.
-- ?1 queue   ?2 tenants as a JSON array
select t.value, l.queue, l.tier, l.tenant, l.concurrency, l.rate, l.rate_per_ms, l.burst, l.weight, l.until, l.paused, l.paused_until, l.version,
       l.changed_at, l.changed_by, l.reason
from json_each(?2) t
cross join sluice_tenant_limit l
where l.tenant <> '' and l.tenant = t.value and l.queue in (?1, '')
union all
select t.value, l.queue, l.tier, l.tenant, l.concurrency, l.rate, l.rate_per_ms, l.burst, l.weight, l.until, l.paused, l.paused_until, l.version,
       l.changed_at, l.changed_by, l.reason
from json_each(?2) t
cross join sluice_tenant n on n.name = t.value and n.tier <> ''
cross join sluice_tenant_limit l
where l.tier <> '' and l.tier = n.tier and l.queue in (?1, '')
order by 1, 4 desc, 2 desc

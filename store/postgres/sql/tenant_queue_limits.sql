-- Lists the limits that may apply to tenants in a queue, the nearest first.
-- $1 text queue   $2 text[] tenants
select t.tenant, l.queue, l.tier, l.tenant, l.concurrency, l.rate, l.rate_per_ms, l.burst, l.weight, l.until, l.paused, l.paused_until, l.version,
       l.changed_at, l.changed_by, l.reason
from unnest($2::text[]) as t(tenant)
cross join lateral (
    select o.* from sluice.tenant_limit o where o.tenant <> '' and o.tenant = t.tenant and o.queue in ($1::text, '')
    union all
    select o.* from sluice.tenant n join sluice.tenant_limit o on o.tier = n.tier
    where n.name = t.tenant and o.tier <> '' and o.queue in ($1::text, '')
) l
order by t.tenant, l.tenant desc, l.queue desc

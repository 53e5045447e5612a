-- Lists the limits of a tier or of a tenant, by queue. Without a tier and a tenant, it lists the limits of every tier.
-- ?1 tier   ?2 tenant
select queue, tier, tenant, concurrency, rate, rate_per_ms, burst, weight, until, paused, paused_until, version, changed_at, changed_by, reason
from sluice_tenant_limit
where tier = ?1 and tenant = ?2 or ?1 = '' and ?2 = '' and tier <> ''
order by tier, queue

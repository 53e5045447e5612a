-- Lists the limits of a tier or of a tenant, by queue. Without a tier and a tenant, it lists the limits of every tier.
-- $1 text tier   $2 text tenant
select queue, tier, tenant, concurrency, rate, rate_per_ms, burst, weight, until, paused, paused_until, version, changed_at, changed_by, reason
from sluice.tenant_limit
where tier = $1::text and tenant = $2::text or $1::text = '' and $2::text = '' and tier <> ''
order by tier, queue

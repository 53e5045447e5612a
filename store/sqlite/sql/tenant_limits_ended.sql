-- Lists limits of tenants with a pause or figures whose time is over, along the index sluice_tenant_limit_end.
-- ?1 now   ?2 limit
select queue, tier, tenant, concurrency, rate, rate_per_ms, burst, weight, until, paused, paused_until, version, changed_at, changed_by, reason
from sluice_tenant_limit
where (until is not null or paused_until is not null) and (until <= ?1 or paused_until <= ?1)
limit ?2 + 0

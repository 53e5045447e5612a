-- Counts the waiting jobs of a tenant, in a queue that serves its tenants apart. The count stops at the limit.
-- ?1 queue   ?2 tenant   ?3 limit
select count(*) from (
    select 1 from (select 1 from sluice_live where queue = ?1 and tenant = ?2 and state = 'queued' and blocked_by is null and in_tenant_queue = 1 limit ?3 + 0)
    union all
    select 1 from (select 1 from sluice_live where blocked_by is not null and queue = ?1 and tenant = ?2 limit ?3 + 0)
    limit ?3 + 0)

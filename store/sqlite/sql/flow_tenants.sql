-- The tenants of a queue that have the most jobs in flight; a walk along the index sluice_live_held, which stops at the
-- limit.
-- ?1 queue   ?2 limit   ?3 how many tenants
select tenant, count(*) as jobs
from (select tenant from sluice_live where queue = ?1 and tenant <> '' and state in ('claimed', 'dispatched') limit ?2)
group by tenant
order by jobs desc, tenant
limit ?3

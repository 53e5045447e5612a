-- Lists the tenants of a queue with the most jobs in flight. The statement walks along the indexes sluice_live_held and
-- sluice_orphan_run_held; each walk stops at the limit.
-- ?1 queue   ?2 limit   ?3 how many tenants
select tenant, count(*) as jobs
from (select tenant from (select tenant from sluice_live where queue = ?1 and tenant <> '' and state in ('claimed', 'dispatched') limit ?2 + 0)
      union all
      select tenant from (select tenant from sluice_orphan_run where queue = ?1 and tenant <> '' limit ?2 + 0))
group by tenant
order by jobs desc, tenant
limit ?3 + 0

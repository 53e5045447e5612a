-- Lists the tenants with the most jobs in flight, by queue. The statement walks along the indexes live_held and
-- orphan_run_held; each walk stops at the limit.
-- $1 integer limit   $2 integer how many tenants of a queue
select q.name, top.tenant, top.jobs
from sluice.queue q
cross join lateral (
    select held.tenant, count(*) as jobs
    from ((select l.tenant from sluice.live l
           where l.queue = q.name and l.tenant <> '' and l.state in ('claimed', 'dispatched') limit $1::integer)
          union all
          (select s.tenant from sluice.orphan_run s where s.queue = q.name and s.tenant <> '' order by s.tenant limit $1::integer)) held
    group by held.tenant
    order by jobs desc, held.tenant collate "C"
    limit $2::integer
) top
order by q.name, top.jobs desc, top.tenant collate "C"

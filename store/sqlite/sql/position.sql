-- Returns the position of a queued job: the due jobs ahead of it in its queue or tenant queue, and the jobs in flight.
-- It also returns the tokens of the queue's and the tenant's rates. Each count is a walk along an index and stops at
-- the limit.
-- ?1 id   ?2 now   ?3 limit
with priority (p) as (values (1), (2), (3), (4), (5), (6), (7), (8), (9))
select
    min(?3,
        (select coalesce(sum(iif(not b.yes,
            (select count(*) from (select 1 from sluice_live w where w.queue = l.queue and w.priority = p
                and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue = 0 and w.due_at <= ?2 limit ?3 + 0)),
            (select count(*) from (select 1 from sluice_live w where w.queue = l.queue and w.tenant = l.tenant and w.priority = p
                and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue = 1 and w.due_at <= ?2 limit ?3 + 0)))), 0) from priority where p < l.priority)
        + iif(not b.yes,
            (select count(*) from (select 1 from sluice_live w where w.queue = l.queue and w.priority = l.priority
                and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue = 0 and w.due_at <= ?2 and (w.due_at, w.seq) < (l.due_at, l.seq) limit ?3 + 0)),
            (select count(*) from (select 1 from sluice_live w where w.queue = l.queue and w.tenant = l.tenant and w.priority = l.priority
                and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue = 1 and w.due_at <= ?2 and (w.due_at, w.seq) < (l.due_at, l.seq) limit ?3 + 0)))),
    min(?3,
        (select count(*) from (select 1 from sluice_live w where w.queue = j.queue and w.state = 'claimed' limit ?3 + 0))
        + (select count(*) from (select 1 from sluice_live w where w.queue = j.queue and w.state in ('dispatched', 'uncertain')
            and w.state = 'dispatched' limit ?3 + 0))
        + (select count(*) from (select 1 from sluice_orphan_run s where s.queue = j.queue limit ?3 + 0))),
    q.rate, q.rate_per_ms, q.burst, f.tokens, f.filled_at,
    b.yes, j.queue, j.tenant, n.tokens, n.filled_at,
    min(?3, (select count(*) from (select 1 from sluice_live w where w.queue = j.queue and w.tenant = j.tenant and w.tenant <> ''
            and w.state in ('claimed', 'dispatched') limit ?3 + 0))
        + (select count(*) from (select 1 from sluice_orphan_run s where s.queue = j.queue and s.tenant = j.tenant and s.tenant <> '' limit ?3 + 0))),
    q.tenant_concurrency, q.tenant_rate, q.tenant_rate_per_ms, q.tenant_burst
from sluice_job j
join (select coalesce(x.fair or x.tenant_concurrency > 0 or x.tenant_rate > 0 or x.tenant_max_waiting > 0, 0)
          or exists (select 1 from sluice_tenant_limit t where t.queue in (y.queue, '') and t.given) as yes
      from sluice_job y left join sluice_queue x on x.name = y.queue where y.id = ?1) b
left join sluice_live l on l.seq = j.seq and l.state = 'queued'
left join sluice_queue q on q.name = j.queue
left join sluice_flow f on f.queue = j.queue
left join sluice_tenant_queue n on n.queue = j.queue and n.tenant = j.tenant
where j.id = ?1

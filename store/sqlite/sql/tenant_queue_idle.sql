-- Reads a slice of the tenant queues along the primary key, and returns which have waiting jobs or jobs in flight.
-- ?1 queue and ?2 tenant after which it begins   ?3 limit
select l.queue, l.tenant, l.virtual_start, l.active, l.at_limit, l.wake_at, l.tokens, l.filled_at,
       exists (select 1 from sluice_live w where w.queue = l.queue and w.tenant = l.tenant and w.state = 'queued'
               and w.blocked_by is null and w.in_tenant_queue = 1)
       or exists (select 1 from sluice_live h where h.queue = l.queue and h.tenant = l.tenant and h.tenant <> ''
                  and h.state in ('claimed', 'dispatched'))
from sluice_tenant_queue l
where (l.queue, l.tenant) > (?1, ?2)
order by l.queue, l.tenant
limit ?3 + 0

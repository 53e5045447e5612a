-- Reads a slice of the tenant queues, and returns which have no waiting job and no job in flight. In queues whose
-- tenants take turns, a tenant queue counts as busy if it is active, at its limit or about to wake: claims take care of
-- it. The statement hops along the index tenant_queue_tenant from tenant to tenant.
-- $1 text queue and $2 text tenant after which the slice begins   $3 integer limit   $4 text[] queues whose tenants take turns
with recursive hop as (
    (select l.queue, l.tenant, 1 as n
     from sluice.tenant_queue l
     where (l.queue, l.tenant) > ($1::text, $2::text)
     order by l.queue, l.tenant
     limit 1)
    union all
    select next.queue, next.tenant, hop.n + 1
    from hop
    cross join lateral (
        select l.queue, l.tenant
        from sluice.tenant_queue l
        where (l.queue, l.tenant) > (hop.queue, hop.tenant)
        order by l.queue, l.tenant
        limit 1
    ) next
    where hop.n < $3::integer
)
select h.queue, h.tenant, n.version,
       case when h.queue = any ($4::text[]) and (n.active or n.at_limit or n.wake_at is not null) then false
            else (select true from sluice.live w
                  where w.queue = h.queue and w.tenant = h.tenant and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue
                  order by w.priority, w.due_at, w.id limit 1) is null
                 and (h.tenant = '' or
                      (select true from sluice.live f
                       where f.queue = h.queue and f.tenant = h.tenant and f.tenant <> '' and f.state in ('claimed', 'dispatched')
                       order by f.claimed_at limit 1) is null) end
from hop h
cross join lateral (
    select l.version, l.active, l.at_limit, l.wake_at
    from sluice.tenant_queue l
    where l.queue = h.queue and l.tenant = h.tenant
    order by l.version desc
    limit 1
) n
order by h.n

-- Adds tenant changes for a slice of the tenant queues with waiting jobs, if the tenant queue is asleep or missing. A
-- claim puts a rightly sleeping tenant queue to sleep again. So claims find a tenant queue that nobody else would wake,
-- for example after plain SQL has changed jobs. The statement hops along the index live_tenant_queue from tenant to
-- tenant.
-- $1 text queue and $2 text tenant after which the slice begins   $3 integer limit
with recursive hop as (
    (select l.queue, l.tenant, 1 as n
     from sluice.live l
     where l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue and (l.queue, l.tenant) > ($1::text, $2::text)
     order by l.queue, l.tenant
     limit 1)
    union all
    select next.queue, next.tenant, hop.n + 1
    from hop
    cross join lateral (
        select l.queue, l.tenant
        from sluice.live l
        where l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue and (l.queue, l.tenant) > (hop.queue, hop.tenant)
        order by l.queue, l.tenant
        limit 1
    ) next
    where hop.n < $3::integer
), waiting as (
    select h.queue, h.tenant, bit_or(1 << p.priority) as jobs, min(due.due_at) as due_at
    from hop h
    left join lateral (
        select l.active from sluice.tenant_queue l where l.queue = h.queue and l.tenant = h.tenant order by l.version desc limit 1
    ) n on true
    cross join generate_series(1, 10) as p(priority)
    cross join lateral (
        select w.due_at
        from sluice.live w
        where w.queue = h.queue and w.tenant = h.tenant and w.priority = p.priority and w.state = 'queued'
          and w.blocked_by is null and w.in_tenant_queue
        order by w.due_at, w.id
        limit 1
    ) due
    where n.active is not true
    group by h.queue, h.tenant
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, due_at, terms)
    select queue, tenant, jobs, due_at, due_at <= now() from waiting
)
select queue, tenant, n from hop order by n desc limit 1

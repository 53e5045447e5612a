-- Returns the position of a queued job: the due jobs ahead of it in its queue or tenant queue, and the jobs in flight.
-- It also returns the tokens of the queue's and the tenant's rates. Each count is a walk along an index and stops at
-- the limit.
-- $1 uuid id   $2 integer limit
select now(),
    least($2::integer, case when b.turns then
        (select count(*)
         from (values (1), (2), (3), (4), (5), (6), (7), (8), (9)) as p(priority)
         cross join lateral (select from sluice.live w where w.queue = l.queue and w.tenant = l.tenant and w.priority = p.priority
             and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue and w.due_at <= now()
             order by w.due_at, w.id limit $2::integer) earlier
         where p.priority < l.priority)
        + (select count(*) from (select from sluice.live w where w.queue = l.queue and w.tenant = l.tenant and w.priority = l.priority
             and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue and w.due_at <= now()
             and (w.due_at, w.id) < (l.due_at, l.id) order by w.due_at, w.id limit $2::integer) same)
    else
        (select count(*)
         from (values (1), (2), (3), (4), (5), (6), (7), (8), (9)) as p(priority)
         cross join lateral (select from sluice.live w where w.queue = l.queue and w.priority = p.priority and w.state = 'queued'
             and w.blocked_by is null and not w.in_tenant_queue and w.due_at <= now() limit $2::integer) earlier
         where p.priority < l.priority)
        + (select count(*) from (select from sluice.live w where w.queue = l.queue and w.priority = l.priority and w.state = 'queued'
             and w.blocked_by is null and not w.in_tenant_queue and w.due_at <= now() and (w.due_at, w.id) < (l.due_at, l.id) limit $2::integer) same)
    end),
    least($2::integer,
        (select count(*) from (select from sluice.live w where w.queue = j.queue and w.state = 'claimed' limit $2::integer) c)
        + (select count(*) from (select from sluice.live w where w.queue = j.queue and w.state = 'dispatched' limit $2::integer) d)
        + (select count(*) from (select from sluice.orphan_run s where s.queue = j.queue order by s.tenant limit $2::integer) s)),
    q.rate, q.rate_per_ms, q.burst, f.tokens, f.filled_at,
    b.turns, j.queue, j.tenant, n.tokens, n.filled_at,
    least($2::integer,
        (select count(*) from (select from sluice.live w where w.queue = j.queue and w.tenant = j.tenant and w.tenant <> ''
            and w.state in ('claimed', 'dispatched') limit $2::integer) h)
        + (select count(*) from (select from sluice.orphan_run s where s.queue = j.queue and s.tenant = j.tenant and s.tenant <> ''
            limit $2::integer) s)),
    q.tenant_concurrency, q.tenant_rate, q.tenant_rate_per_ms, q.tenant_burst
from sluice.job j
left join sluice.live l on l.id = j.id and l.state = 'queued'
left join sluice.queue q on q.name = j.queue
left join sluice.flow f on f.queue = j.queue
left join lateral (select t.tokens, t.filled_at from sluice.tenant_queue t where t.queue = j.queue and t.tenant = j.tenant
                   order by t.version desc limit 1) n on true
cross join lateral (select coalesce(q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0, false)
    or exists (select from sluice.tenant_limit t where t.queue in (j.queue, '') and t.given) as turns) b
where j.id = $1::uuid

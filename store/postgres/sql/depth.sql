-- Counts the jobs of a queue by state. Every count stops at the limit.
-- $1 text queue   $2 integer limit
select
    (select count(*) from (
        (select from generate_series(1, 10) as p(priority)
         cross join lateral (select from sluice.live l where l.queue = $1::text and l.priority = p.priority and l.state = 'queued'
             and l.blocked_by is null and not l.in_tenant_queue and l.due_at <= now() limit $2::integer) ready)
        union all
        (select from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
             and l.due_at <= now() order by l.due_at limit $2::integer)
        limit $2::integer) n),
    (select count(*) from (
        (select from generate_series(1, 10) as p(priority)
         cross join lateral (select from sluice.live l where l.queue = $1::text and l.priority = p.priority and l.state = 'queued'
             and l.blocked_by is null and not l.in_tenant_queue and l.due_at > now() limit $2::integer) scheduled)
        union all
        (select from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
             and l.due_at > now() order by l.due_at limit $2::integer)
        limit $2::integer) n),
    (select count(*) from (select from sluice.live l where l.queue = $1::text and l.blocked_by is not null limit $2::integer) n),
    (select count(*) from (select from sluice.live l where l.queue = $1::text and l.state = 'claimed' limit $2::integer) n),
    (select count(*) from (select from sluice.live l where l.queue = $1::text and l.state = 'dispatched' limit $2::integer) n),
    (select count(*) from (select from sluice.live l where l.queue = $1::text and l.state = 'uncertain' limit $2::integer) n),
    (select count(*) from (select from sluice.orphan_run s where s.queue = $1::text order by s.tenant limit $2::integer) n),
    (select count(*) from (select from sluice.done d where d.queue = $1::text and d.outcome = 'dead' and d.requeued_at is null limit $2::integer) n),
    least(
        (select min(first.due_at)
         from generate_series(1, 10) as p(priority)
         cross join lateral (select l.due_at from sluice.live l where l.queue = $1::text and l.priority = p.priority and l.state = 'queued'
             and l.blocked_by is null and not l.in_tenant_queue and l.due_at <= now() order by l.due_at, l.id limit 1) first),
        (select l.due_at from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
             and l.due_at <= now() order by l.due_at limit 1))

-- Counts the jobs in flight of tenants in a queue and their orphan runs, each up to a limit. Meanwhile the lock on the
-- queue's row in flow keeps other claims out. The statement also returns the earliest claim of these jobs, and whether
-- the end of one of them will add no tenant change.
-- $1 text queue   $2 text[] tenants   $3 integer[] limits   $4 timestamptz[] counted_from of each (null: from the front)
select t.tenant, held.jobs + stray.runs, held.first, held.outside
from unnest($2::text[], $3::integer[], $4::timestamptz[]) as t(tenant, most, counted_from)
cross join lateral (
    select count(*) as jobs, min(h.claimed_at) as first, coalesce(bool_or(not h.in_tenant_queue), false) as outside
    from (
        select l.claimed_at, l.in_tenant_queue
        from sluice.live l
        where l.queue = $1::text and l.tenant = t.tenant and l.tenant <> '' and l.state in ('claimed', 'dispatched')
          and l.claimed_at >= coalesce(t.counted_from, '-infinity')
        order by l.claimed_at
        limit t.most
    ) h
) held
cross join lateral (
    select count(*) as runs
    from (select from sluice.orphan_run s where s.queue = $1::text and s.tenant = t.tenant and t.tenant <> '' limit t.most) s
) stray

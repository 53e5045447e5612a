-- Counts what tenants have in flight in a queue, each up to a limit, and the runs of their ended jobs that may be open, while the lock on its flow keeps others from
-- claiming; tells when the first of it was claimed, and whether the end of some of it will not be told.
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

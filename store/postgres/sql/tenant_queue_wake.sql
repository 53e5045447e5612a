-- Wakes tenant queues of a queue that have something new, and makes missing ones. A tenant queue whose jobs are due
-- later sleeps until then. A new tenant queue gets a higher version than any earlier tenant queue of the tenant. A
-- tenant queue at its concurrency sleeps on, unless there may be room. If limits have changed, the tenant queue wakes.
-- $1 text queue   $2 text[] tenants   $3 integer[] priorities as bits   $4 timestamptz[] when the first new job is due (null: no job came)
-- $5 boolean[] whether there may be room   $6 boolean[] whether limits have changed
-- $7 timestamptz now   $8 double precision virtual_start right behind the low-water mark
with known as materialized (
    select w.*, n.place,
           case when n.place is null then w.due_at <= $7::timestamptz
                when n.active or w.terms then true
                when n.at_limit then w.room
                else coalesce(w.due_at <= $7::timestamptz, false) end as awake,
           not coalesce(n.at_limit, false) and w.due_at > $7::timestamptz and (n.wake_at is null or w.due_at < n.wake_at) as earlier
    from unnest($2::text[], $3::integer[], $4::timestamptz[], $5::boolean[], $6::boolean[]) as w(tenant, jobs, due_at, room, terms)
    left join lateral (
        select l.ctid as place, l.active, l.at_limit, l.wake_at
        from sluice.tenant_queue l
        where l.queue = $1::text and l.tenant = w.tenant
        order by l.version desc
        limit 1
    ) n on true
), made as (
    insert into sluice.tenant_queue (queue, tenant, version, virtual_start, jobs, active, wake_at)
    select $1::text, k.tenant, (extract(epoch from $7::timestamptz) * 1000000)::bigint, $8::double precision, k.jobs, k.awake, case when not k.awake then k.due_at end
    from known k
    where k.place is null and k.jobs <> 0
)
update sluice.tenant_queue l
set version = l.version + 1, jobs = l.jobs | k.jobs, active = k.awake, at_limit = l.at_limit and not k.awake,
    wake_at = case when k.awake then null when k.earlier then k.due_at else l.wake_at end,
    virtual_start = case when k.awake and not l.active then greatest(l.virtual_start, $8::double precision) else l.virtual_start end
from known k
where l.ctid = k.place and l.ctid = any (array(select place from known where place is not null))
  and (l.jobs | k.jobs <> l.jobs or k.awake and not l.active or k.earlier and not k.awake)

-- Wakes lines of a queue in which there is something new, and makes those that are not there yet. One whose jobs are
-- due later sleeps until then; one at its capacity sleeps on, unless there is room.
-- $1 text queue   $2 text[] tenants   $3 integer[] priorities as bits   $4 timestamptz[] when the first job is due (null: none came)
-- $5 boolean[] whether there may be room   $6 timestamptz now   $7 double precision turn right behind the mark
with news as (
    select w.tenant, w.jobs, w.room, case when w.due_at > $6::timestamptz then w.due_at end as later
    from unnest($2::text[], $3::integer[], $4::timestamptz[], $5::boolean[]) as w(tenant, jobs, due_at, room)
), known as materialized (
    select w.*, n.place,
           n.at_capacity and not w.room as held,
           w.later is not null and not w.room and not n.active and not n.at_capacity as later_only
    from news w
    left join lateral (
        select l.ctid as place, l.at_capacity, l.active
        from sluice.line l
        where l.queue = $1::text and l.tenant = w.tenant
        order by l.version desc
        limit 1
    ) n on true
), made as (
    insert into sluice.line (queue, tenant, version, turn, jobs, active, wake_at)
    select $1::text, k.tenant, 1, $7::double precision, k.jobs, k.later is null, k.later
    from known k
    where k.place is null and k.jobs <> 0
)
update sluice.line l
set version = l.version + 1, jobs = l.jobs | k.jobs, active = not (k.held or k.later_only), at_capacity = k.held,
    wake_at = case when k.held then l.wake_at when k.later_only then least(l.wake_at, k.later) end,
    turn = case when l.active or k.held or k.later_only then l.turn else greatest(l.turn, $7::double precision) end
from known k
where l.ctid = k.place and l.ctid = any (array(select place from known where place is not null))
  and (l.jobs | k.jobs <> l.jobs or not l.active and not k.held and (not k.later_only or l.wake_at is null or k.later < l.wake_at))

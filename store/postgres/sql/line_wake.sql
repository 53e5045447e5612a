-- Wakes lines of a queue in which there is something new, and makes those that are not there yet. One at its capacity
-- sleeps on, unless there is room.
-- $1 text queue   $2 text[] tenants   $3 integer[] priorities as bits   $4 boolean[] whether there may be room
-- $5 double precision turn right behind the mark
with woken as (
    select * from unnest($2::text[], $3::integer[], $4::boolean[]) as w(tenant, jobs, room)
), known as materialized (
    select w.tenant, w.jobs, w.room, n.place, n.at_capacity and not w.room as sleeps_on
    from woken w
    left join lateral (
        select l.ctid as place, l.at_capacity
        from sluice.line l
        where l.queue = $1::text and l.tenant = w.tenant
        order by l.version desc
        limit 1
    ) n on true
), made as (
    insert into sluice.line (queue, tenant, version, turn, jobs, active)
    select $1::text, k.tenant, 1, $5::double precision, k.jobs, true
    from known k
    where k.place is null and k.jobs <> 0
)
update sluice.line l
set version = l.version + 1, jobs = l.jobs | k.jobs, active = not k.sleeps_on, at_capacity = k.sleeps_on,
    wake_at = case when k.sleeps_on then l.wake_at end,
    turn = case when l.active or k.sleeps_on then l.turn else greatest(l.turn, $5::double precision) end
from known k
where l.ctid = k.place and l.ctid = any (array(select place from known where place is not null))
  and (l.jobs | k.jobs <> l.jobs or not l.active and not k.sleeps_on)

-- Wakes the tenant queues of a queue whose time has come, and returns their number and the latest wake time.
-- $1 text queue   $2 timestamptz the first instant to read   $3 timestamptz now   $4 double precision virtual_start right behind the low-water mark
-- $5 integer limit
with due as materialized (
    select w.ctid as place, w.wake_at
    from sluice.tenant_queue w
    where w.queue = $1::text and not w.active and w.wake_at >= $2::timestamptz and w.wake_at <= $3::timestamptz
    order by w.wake_at
    limit $5::integer
), woken as (
    update sluice.tenant_queue l
    set version = l.version + 1, active = true, at_limit = false, wake_at = null, virtual_start = greatest(l.virtual_start, $4::double precision)
    where l.ctid = any (array(select place from due))
)
select count(*), max(wake_at) from due

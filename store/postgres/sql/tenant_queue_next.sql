-- Returns whether a tenant queue of a queue is active, when the next sleeping one wakes by itself, and the clock.
-- $1 text queue   $2 double precision virtual_start and $3 text tenant of the low-water mark   $4 timestamptz the first instant to read
select (select true from sluice.tenant_queue where queue = $1::text and active and (virtual_start, tenant collate "C") >= ($2::double precision, $3::text)
        order by virtual_start, tenant collate "C" limit 1) is not null,
       (select wake_at from sluice.tenant_queue where queue = $1::text and not active and wake_at >= $4::timestamptz order by wake_at limit 1),
       clock_timestamp()

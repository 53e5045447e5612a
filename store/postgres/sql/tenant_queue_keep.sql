-- Stores tenant queues after their turns. It finds them by their ctid, which no other transaction can have changed.
-- $1 tid[] places   $2 double precision[] virtual_start   $3 integer[] priorities as bits   $4 boolean[] active   $5 boolean[] at_limit
-- $6 timestamptz[] wake_at   $7 double precision[] tokens   $8 timestamptz[] filled_at   $9 timestamptz[] counted_from
update sluice.tenant_queue l
set version = l.version + 1, virtual_start = k.virtual_start, jobs = k.jobs, active = k.active, at_limit = k.at_limit, wake_at = k.wake_at,
    tokens = k.tokens, filled_at = k.filled_at, counted_from = k.counted_from
from unnest($1::tid[], $2::double precision[], $3::integer[], $4::boolean[], $5::boolean[], $6::timestamptz[], $7::double precision[],
            $8::timestamptz[], $9::timestamptz[]) as k(place, virtual_start, jobs, active, at_limit, wake_at, tokens, filled_at, counted_from)
where l.ctid = k.place and l.ctid = any ($1::tid[])

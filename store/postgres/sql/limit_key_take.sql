-- Counts claimed units against the rates of limits per key and by cost. A limit that is not per key has the empty key.
-- The caller holds the lock of the limits.
-- $1 text[] names of the limits, $2 double precision[] their rates per second and $3 double precision[] the units that their buckets
-- hold, $4 text[] the key and $5 integer[] the claimed units of each   $6 timestamptz now
insert into sluice.limit_key (name, key, tokens, filled_at, idle_from)
select t.name, t.key, f.filled - t.units, $6::timestamptz,
       greatest($6::timestamptz + make_interval(secs => (t.burst - f.filled + t.units) / t.rate), k.closed_until)
from rows from (unnest($1::text[], $2::double precision[], $3::double precision[], $4::text[], $5::integer[]), generate_series(1, cardinality($1::text[])))
    as t(name, rate, burst, key, units)
left join lateral (select s.tokens, s.filled_at, s.closed_until from sluice.limit_key s where s.name = t.name and s.key = t.key offset 0) k on true
cross join lateral (
    select case when k.filled_at is null then t.burst
                else least(t.burst, k.tokens + t.rate * greatest(extract(epoch from $6::timestamptz - k.filled_at)::double precision, 0)) end as filled
) f
order by t.name collate "C", t.key collate "C"
on conflict (name, key) do update
set tokens = excluded.tokens, filled_at = excluded.filled_at, idle_from = excluded.idle_from

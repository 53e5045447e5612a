-- Counts claimed jobs against the rates of their limit keys. The lock of the limits is held.
-- $1 text[] names of the limits, $2 double precision[] their rates per second (0: none) and $3 double precision[] the jobs that their
-- buckets hold   $4 timestamptz now   $5 text[] keys and $6 integer[] the claimed jobs of each
insert into sluice.limit_key (name, key, tokens, filled_at, idle_from)
select l.name, t.key, f.filled - t.jobs, $4::timestamptz,
       greatest($4::timestamptz + make_interval(secs => (l.burst - f.filled + t.jobs) / l.rate), k.closed_until)
from unnest($1::text[], $2::double precision[], $3::double precision[]) as l(name, rate, burst)
cross join unnest($5::text[], $6::integer[]) as t(key, jobs)
left join lateral (select s.tokens, s.filled_at, s.closed_until from sluice.limit_key s where s.name = l.name and s.key = t.key offset 0) k on true
cross join lateral (
    select case when k.filled_at is null then l.burst
                else least(l.burst, k.tokens + l.rate * greatest(extract(epoch from $4::timestamptz - k.filled_at)::double precision, 0)) end as filled
) f
where l.rate > 0
order by l.name collate "C", t.key collate "C"
on conflict (name, key) do update
set tokens = excluded.tokens, filled_at = excluded.filled_at, idle_from = excluded.idle_from

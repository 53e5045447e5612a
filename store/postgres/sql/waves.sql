-- Reads the last counts, by queue. For each queue, one row sums all jobs that are due after the given time ahead. If
-- nothing was counted, one row has the clock and nulls.
-- $1 text queue; empty: every queue   $2 interval ahead; null: everything   $3 boolean whether to return tenants
select now(), c.queue, c.counted_at, c.took_ms, w.part, w.at, w.jobs, w.tenants
from (select coalesce(now() + $2::interval, 'infinity') as until) span
left join sluice.wave_count c on $1::text = '' or c.queue = $1::text
left join lateral (
    select w.part, w.at, w.jobs, case when $3::boolean then w.tenants end as tenants
    from sluice.wave w
    where w.queue = c.queue and (w.part not in ('minute', 'hour') or w.at < span.until)
    union all
    select 'later', null, sum(w.jobs)::bigint, null
    from sluice.wave w
    where w.queue = c.queue and w.part in ('minute', 'hour') and w.at >= span.until
    having count(*) > 0
) w on true
order by c.queue, w.at

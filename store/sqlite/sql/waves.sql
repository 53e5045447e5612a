-- Reads the last counts, by queue. For each queue, one row sums all jobs that are due from the given instant on.
-- ?1 queue; empty: every queue   ?2 until   ?3 whether to return tenants
with counted as materialized (
    select queue, counted_at, took_us from sluice_wave_count where ?1 = '' or queue = ?1
)
select c.queue as queue, c.counted_at, c.took_us, w.part, w.at as at, w.jobs, iif(?3, w.tenants, '')
from counted c
left join sluice_wave w on w.queue = c.queue and (w.part not in ('minute', 'hour') or w.at < ?2)
union all
select c.queue, c.counted_at, c.took_us, 'later', 0, sum(w.jobs), ''
from counted c
join sluice_wave w on w.queue = c.queue and w.part in ('minute', 'hour') and w.at >= ?2
group by c.queue
order by queue, at

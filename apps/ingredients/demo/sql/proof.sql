-- What became of mentions and jobs. A decision is a row of the trail that says so; tries and confirmations are none.
with decided as (
    select m.id, m.state, m.reason, j.state as job_state, j.attempts, j.recoveries, j.error, m.faults,
           count(t.id) filter (where t.what in ('matched', 'on hold', 'not food')) as decisions,
           count(t.id) filter (where t.what = 'confirmed') as confirmations
    from ingredients.mention m
    left join sluice.jobs j on j.id = m.job
    left join ingredients.trail t on t.mention = m.id
    group by m.id, j.id, j.state, j.attempts, j.recoveries, j.error
), waits as (
    select extract(epoch from claimed_at - created_at) as waited, finished_at, created_at,
           extract(epoch from lead(finished_at, 49) over (order by finished_at) - finished_at) as fifty
    from sluice.jobs where finished_at is not null
)
select count(*) as mentions,
       (select count(*) from sluice.job) as jobs,
       count(*) filter (where job_state = 'completed') as completed,
       count(*) filter (where job_state = 'dead') as dead,
       count(*) filter (where job_state = 'completed' and decisions = 1) as once,
       count(*) filter (where job_state = 'completed' and decisions = 0) as never,
       count(*) filter (where decisions > 1) as twice,
       count(*) filter (where job_state <> 'completed' and decisions > 0) as undone,
       count(*) filter (where state in ('on hold', 'failed') and coalesce(reason, '') = '') as without_reason,
       count(*) filter (where (job_state = 'dead') <> (state = 'failed')) as disagree,
       count(*) filter (where job_state = 'completed' and attempts <> faults) as miscounted,
       count(*) filter (where confirmations > 0) as confirmed,
       coalesce(sum(faults), 0) as faults,
       (select count(*) from ingredients.trail where what in ('matched', 'on hold', 'not food') and resolved_by like 'python %') as python,
       (select count(*) from ingredients.trail where what in ('matched', 'on hold', 'not food') and resolved_by like 'node %') as node,
       (select count(*) from ingredients.trail where what in ('matched', 'on hold', 'not food') and resolved_by like 'go %') as go,
       (select coalesce(percentile_cont(0.5) within group (order by waited), 0) from waits)::float8 as median_wait,
       (select coalesce(percentile_cont(0.95) within group (order by waited), 0) from waits)::float8 as p95_wait,
       (select coalesce(max(fifty), 0) from waits)::float8 as slowest_fifty,
       (select coalesce(extract(epoch from max(finished_at) - min(created_at)), 0) from waits)::float8 as took
from decided

-- What became of the jobs of a queue. Each must have completed under the name that the source design gives its run.
-- $1 queue
select
    count(*),
    count(*) filter (where state = 'completed'),
    count(*) filter (where ref <> 'exec-' || queue || '-' || key),
    coalesce(sum(attempts), 0) + (select count(*) from sluice_attempt a join sluice_job j on j.seq = a.seq where j.queue = $1),
    coalesce(sum(releases), 0),
    coalesce(sum(recoveries), 0)
from sluice_jobs
where queue = $1

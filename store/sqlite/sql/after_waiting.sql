-- Lists the unfinished jobs that wait until somebody requeues a failed job.
-- ?1 seq of the failed job
select a.seq
from sluice_job j
cross join sluice_after a on a.after_id = j.id
cross join sluice_live l on l.seq = a.seq
where j.seq = ?1 and a.rule = 'wait'

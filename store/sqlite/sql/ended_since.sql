-- Lists the jobs of a queue that ended with one outcome after an instant and a job, in the order of their ends.
-- ?1 queue   ?2 outcome   ?3 instant in µs   ?4 seq of the job   ?5 limit
select j.id, d.finished_at, d.seq
from sluice_done d indexed by sluice_done_ended
join sluice_job j on j.seq = d.seq
where d.queue = ?1 and d.outcome = ?2 and d.requeued_at is null and (d.finished_at, d.seq) > (?3, ?4)
order by d.finished_at, d.seq
limit ?5 + 0

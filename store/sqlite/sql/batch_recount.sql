-- Counts the jobs of a batch one by one.
-- ?1 id
select count(l.seq), count(d.seq), count(*) filter (where d.outcome = 'completed'), count(*) filter (where d.outcome = 'dead'),
       count(*) filter (where d.outcome = 'cancelled')
from sluice_job j indexed by sluice_job_by_batch
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq and d.requeued_at is null
where j.batch_id = ?1

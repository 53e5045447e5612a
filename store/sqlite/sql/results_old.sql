-- Lists the jobs of a queue with one outcome whose results were kept long enough, from the cursor on. Of jobs that
-- ended at the instant of the cursor, it lists only jobs with a result.
-- ?1 queue   ?2 outcome   ?3 the cursor   ?4 ended before   ?5 limit
select seq, generation, finished_at
from sluice_done
where queue = ?1 and outcome = ?2 and requeued_at is null and finished_at >= ?3 and finished_at < ?4
  and (finished_at > ?3 or length(result) > 0)
order by finished_at
limit ?5 + 0

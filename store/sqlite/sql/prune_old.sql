-- Lists the jobs of a queue with one outcome that were kept long enough, by their end.
-- ?1 queue   ?2 outcome   ?3 ended at or after   ?4 ended before   ?5 limit
select seq, generation, finished_at
from sluice_done
where queue = ?1 and outcome = ?2 and requeued_at is null and finished_at >= ?3 and finished_at < ?4
order by finished_at
limit ?5 + 0

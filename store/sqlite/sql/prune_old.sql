-- The jobs of a queue that ended as is said, and were kept long enough: the first that ended first.
-- ?1 queue   ?2 outcome   ?3 ended at or after   ?4 ended before   ?5 limit
select seq, generation, finished_at
from sluice_done
where queue = ?1 and outcome = ?2 and requeued_at is null and finished_at >= ?3 and finished_at < ?4
order by finished_at
limit ?5 + 0

-- Finds the jobs of a queue with one outcome that were kept long enough, those that ended first: their number, when the
-- last of them ended, and their seqs as a JSON array.
-- ?1 queue   ?2 outcome   ?3 ended at or after   ?4 ended before   ?5 limit
select count(*), coalesce(max(finished_at), 0), json_group_array(seq)
from (select seq, finished_at
      from sluice_done
      where queue = ?1 and outcome = ?2 and requeued_at is null and finished_at >= ?3 and finished_at < ?4
      order by finished_at
      limit ?5 + 0)

-- Jobs of one queue and priority that are due, the longest due first; a walk along the index sluice_live_claim.
-- ?1 queue   ?2 priority   ?3 now   ?4 limit
select seq
from sluice_live
where queue = ?1 and priority = ?2 and state = 'queued' and blocked_by is null and in_line = 0 and due_at <= ?3
  and (expires_at is null or expires_at > ?3)
order by due_at, seq
limit ?4

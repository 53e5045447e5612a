-- Finds jobs of one queue and priority that are due, or will be soon, the longest due first, along the index
-- sluice_live_claim. Jobs that will have expired by their due time are left out.
-- ?1 queue   ?2 priority   ?3 now   ?4 limit   ?5 until when they are due
select seq
from sluice_live
where queue = ?1 and priority = ?2 and state = 'queued' and blocked_by is null and in_tenant_queue = 0 and due_at <= ?5
  and (expires_at is null or expires_at > max(?3, due_at))
order by due_at, seq
limit ?4 + 0

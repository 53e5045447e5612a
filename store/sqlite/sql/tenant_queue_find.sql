-- Finds jobs of one tenant queue and priority that are due, or will be soon, the longest due first, along the index
-- sluice_live_tenant_queue. Jobs that will have expired by their due time are left out.
-- ?1 queue   ?2 tenant   ?3 priority   ?4 now   ?5 limit   ?6 until when they are due
select seq
from sluice_live
where queue = ?1 and tenant = ?2 and priority = ?3 and state = 'queued' and blocked_by is null and in_tenant_queue = 1 and due_at <= ?6
  and (expires_at is null or expires_at > max(?4, due_at))
order by due_at, seq
limit ?5 + 0

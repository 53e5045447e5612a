-- Returns when the next job of a tenant queue and priority is due.
-- ?1 queue   ?2 tenant   ?3 priority   ?4 now
select due_at
from sluice_live
where queue = ?1 and tenant = ?2 and priority = ?3 and state = 'queued' and blocked_by is null and in_tenant_queue = 1
  and (expires_at is null or expires_at > max(?4, due_at))
order by due_at
limit 1

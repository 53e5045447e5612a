-- Returns when the next job of a queue and priority is due.
-- ?1 queue   ?2 priority   ?3 now
select due_at
from sluice_live
where queue = ?1 and priority = ?2 and state = 'queued' and blocked_by is null and in_tenant_queue = 0 and (expires_at is null or expires_at > max(?3, due_at))
order by due_at
limit 1

-- Wakes the tenant queues of a queue whose time has come.
-- ?1 queue   ?2 now, or how soon   ?3 virtual_start right behind the low-water mark
update sluice_tenant_queue
set active = 1, at_limit = 0, wake_at = null, virtual_start = max(virtual_start, ?3)
where queue = ?1 and active = 0 and wake_at <= ?2

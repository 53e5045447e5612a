-- Moves waiting jobs out of the tenant queues of a queue that no longer serves its tenants in turns.
-- ?1 queue   ?2 limit
update sluice_live set in_tenant_queue = 0
where seq in (select seq from sluice_live where queue = ?1 and state = 'queued' and blocked_by is null and in_tenant_queue = 1 limit ?2 + 0)

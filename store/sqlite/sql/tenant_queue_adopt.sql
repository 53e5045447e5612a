-- Moves waiting jobs of a queue into the tenant queues, along the index sluice_live_claim.
-- ?1 queue   ?2 limit
update sluice_live set in_tenant_queue = 1
where seq in (select seq from sluice_live where queue = ?1 and state = 'queued' and blocked_by is null and in_tenant_queue = 0 limit ?2 + 0)

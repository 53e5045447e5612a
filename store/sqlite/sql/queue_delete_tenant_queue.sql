-- Deletes a queue's rows in sluice_tenant_queue.
-- ?1 queue
delete from sluice_tenant_queue where queue = ?1

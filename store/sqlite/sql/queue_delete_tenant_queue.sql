-- Deletes what sluice_tenant_queue has of a queue.
-- ?1 queue
delete from sluice_tenant_queue where queue = ?1

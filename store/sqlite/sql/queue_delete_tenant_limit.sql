-- Deletes what sluice_tenant_limit has of a queue.
-- ?1 queue
delete from sluice_tenant_limit where queue = ?1

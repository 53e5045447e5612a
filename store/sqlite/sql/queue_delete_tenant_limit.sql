-- Deletes a queue's rows in sluice_tenant_limit.
-- ?1 queue
delete from sluice_tenant_limit where queue = ?1

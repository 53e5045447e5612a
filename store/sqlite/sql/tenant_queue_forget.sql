-- Deletes a tenant queue; the next job of its tenant makes it anew.
-- ?1 queue   ?2 tenant
delete from sluice_tenant_queue where queue = ?1 and tenant = ?2

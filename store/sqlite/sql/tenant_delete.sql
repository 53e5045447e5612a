-- Deletes a tenant.
-- ?1 name
delete from sluice_tenant where name = ?1

-- Deletes the limits of a tier or of a tenant.
-- ?1 tier   ?2 tenant
delete from sluice_tenant_limit where tier = ?1 and tenant = ?2

-- Reads one tenant.
-- ?1 name
select name, tier, version, changed_at, changed_by, reason from sluice_tenant where name = ?1

-- Lists the tenants of a tier, by name.
-- ?1 tier
select name, tier, version, changed_at, changed_by, reason from sluice_tenant where tier = ?1 order by name

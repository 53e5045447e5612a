-- Lists a page of tenants, by name.
-- ?1 after   ?2 limit
select name, tier, version, changed_at, changed_by, reason from sluice_tenant where name > ?1 order by name limit ?2 + 0

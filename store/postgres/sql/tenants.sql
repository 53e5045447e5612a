-- Lists a page of tenants, by name.
-- $1 text after   $2 integer limit
select name, tier, version, changed_at, changed_by, reason from sluice.tenant where name > $1::text order by name limit $2::integer

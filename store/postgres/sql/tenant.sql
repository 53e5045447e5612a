-- Reads one tenant.
-- $1 text name
select name, tier, version, changed_at, changed_by, reason from sluice.tenant where name = $1::text

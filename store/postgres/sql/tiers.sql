-- Lists the tiers, by name.
select name, version, changed_at, changed_by, reason from sluice.tier order by name

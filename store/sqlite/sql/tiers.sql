-- Lists the tiers, by name.
select name, version, changed_at, changed_by, reason from sluice_tier order by name

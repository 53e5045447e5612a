-- Stores a tenant, unless somebody else changed it in between.
-- $1 text name   $2 text tier   $3 bigint the version it was read with (0: new)   $4 text by whom   $5 text reason
insert into sluice.tenant as t (name, tier, changed_by, reason)
select $1::text, $2::text, $4::text, $5::text
where $3::bigint = 0 or exists (select from sluice.tenant where name = $1::text)
on conflict (name) do update
set tier = excluded.tier, version = t.version + 1, changed_at = now(), changed_by = excluded.changed_by, reason = excluded.reason
where t.version = $3::bigint
returning changed_at

-- Stores a tier, unless somebody else changed it in between.
-- $1 text name   $2 bigint the version it was read with (0: new)   $3 text by whom   $4 text reason
insert into sluice.tier as t (name, changed_by, reason)
select $1::text, $3::text, $4::text
where $2::bigint = 0 or exists (select from sluice.tier where name = $1::text)
on conflict (name) do update
set version = t.version + 1, changed_at = now(), changed_by = excluded.changed_by, reason = excluded.reason
where t.version = $2::bigint
returning changed_at

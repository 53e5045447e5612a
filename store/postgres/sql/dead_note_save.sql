-- Stores a note on a group of dead letters, unless somebody else changed it in between.
-- $1 text fingerprint   $2 text note   $3 text owner   $4 timestamptz resolved_at   $5 bigint the version it was read with (0: new)
-- $6 text by whom   $7 text reason
insert into sluice.dead_note as n (fingerprint, note, owner, resolved_at, changed_by, reason)
select $1::text, $2::text, $3::text, $4::timestamptz, $6::text, $7::text
where $5::bigint = 0 or exists (select from sluice.dead_note where fingerprint = $1::text)
on conflict (fingerprint) do update
set note = excluded.note, owner = excluded.owner, resolved_at = excluded.resolved_at, version = n.version + 1, changed_at = now(),
    changed_by = excluded.changed_by, reason = excluded.reason
where n.version = $5::bigint
returning changed_at

-- Stores a token of the HTTP API whose version was read in the same transaction. The time of its last use stays. No
-- row: another transaction stored the token in between.
-- $1 text name   $2 text hash   $3 text old_hash (or null)   $4 text terms   $5 bigint version   $6 timestamptz changed_at
-- $7 text by whom   $8 text reason
insert into sluice.access_token as t (name, hash, old_hash, terms, version, changed_at, changed_by, reason)
values ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::timestamptz, $7::text, $8::text)
on conflict (name) do update
set hash = excluded.hash, old_hash = excluded.old_hash, terms = excluded.terms, version = excluded.version,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason
where t.version = excluded.version - 1
returning t.changed_at

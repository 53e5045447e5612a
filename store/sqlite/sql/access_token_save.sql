-- Stores a token of the HTTP API, whose version was read in the same transaction. The time of its last use stays.
-- ?1 name   ?2 hash   ?3 old_hash or null   ?4 terms   ?5 version   ?6 changed_at   ?7 changed_by   ?8 reason
insert into sluice_access_token (name, hash, old_hash, terms, version, changed_at, changed_by, reason)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict (name) do update
set hash = excluded.hash, old_hash = excluded.old_hash, terms = excluded.terms, version = excluded.version,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason

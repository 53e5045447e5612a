-- Stores a note on a group of dead letters, whose version was read in the same transaction.
-- ?1 fingerprint   ?2 note   ?3 owner   ?4 resolved_at or null   ?5 version   ?6 now   ?7 actor   ?8 reason
insert into sluice_dead_note (fingerprint, note, owner, resolved_at, version, changed_at, changed_by, reason)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict (fingerprint) do update
set note = excluded.note, owner = excluded.owner, resolved_at = excluded.resolved_at, version = excluded.version,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason

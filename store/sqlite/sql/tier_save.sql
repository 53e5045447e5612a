-- Stores a tier, whose version was read in the same transaction.
-- ?1 name   ?2 version   ?3 now   ?4 actor   ?5 reason
insert into sluice_tier (name, version, changed_at, changed_by, reason) values (?1, ?2, ?3, ?4, ?5)
on conflict (name) do update set version = excluded.version, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, reason = excluded.reason

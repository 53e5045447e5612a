-- Stores the definition of a schedule, whose version was read in the same transaction.
-- ?1 name   ?2 queue   ?3 version   ?4 next_at or null   ?5 definition   ?6 progress   ?7 changed_at   ?8 changed_by   ?9 reason
insert into sluice_schedule (name, queue, version, next_at, definition, progress, changed_at, changed_by, reason)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
on conflict (name) do update
set queue = excluded.queue, version = excluded.version, next_at = excluded.next_at, definition = excluded.definition,
    progress = excluded.progress, changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason

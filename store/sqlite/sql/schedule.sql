-- Reads a schedule.
-- ?1 name
select name, version, next_at, definition, progress, changed_at, changed_by, reason from sluice_schedule where name = ?1

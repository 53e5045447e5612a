-- Reads a schedule.
-- $1 text name
select name, version, next_at, definition, progress, changed_at, changed_by, reason, now() from sluice.schedule where name = $1::text

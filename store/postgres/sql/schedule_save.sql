-- Stores the definition of a schedule whose version was read in the same transaction. No row: another transaction
-- stored the schedule in between.
-- $1 text name   $2 text queue   $3 bigint version   $4 timestamptz next_at (or null)   $5 text definition   $6 text progress
-- $7 timestamptz changed_at   $8 text by whom   $9 text reason
insert into sluice.schedule as s (name, queue, version, next_at, definition, progress, changed_at, changed_by, reason)
values ($1::text, $2::text, $3::bigint, $4::timestamptz, $5::text, $6::text, $7::timestamptz, $8::text, $9::text)
on conflict (name) do update
set queue = excluded.queue, version = excluded.version, next_at = excluded.next_at, definition = excluded.definition,
    progress = excluded.progress, changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason
where s.version = excluded.version - 1
returning s.changed_at

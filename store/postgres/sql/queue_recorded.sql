-- Stores the audited settings of a queue, and its scheduled changes. The caller has locked the row.
-- $1 text name   $2 bigint version   $3 timestamptz changed_at   $4 text by whom   $5 text reason
-- $6 text the settings as JSON   $7 text the scheduled changes as JSON (null: none)
update sluice.queue
set version = $2::bigint, changed_at = $3::timestamptz, changed_by = $4::text, reason = $5::text,
    recorded = $6::text::jsonb, scheduled = $7::text::jsonb
where name = $1::text

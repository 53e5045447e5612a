-- Returns the last entry of the audit. SQLite has one writer at a time, so no entry can appear before it later.
select coalesce(max(seq), 0) from sluice_audit

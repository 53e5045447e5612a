-- Reads a silence.
-- ?1 id
select id, rule, queue, created_at, until, made_by, reason from sluice_alert_silence where id = ?1

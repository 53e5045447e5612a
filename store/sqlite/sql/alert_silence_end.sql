-- Ends a silence.
-- ?1 id
delete from sluice_alert_silence where id = ?1

-- Deletes a queue's rows in sluice_alert_silence.
-- ?1 queue
delete from sluice_alert_silence where queue = ?1

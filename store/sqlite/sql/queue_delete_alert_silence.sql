-- Deletes what sluice_alert_silence has of a queue.
-- ?1 queue
delete from sluice_alert_silence where queue = ?1

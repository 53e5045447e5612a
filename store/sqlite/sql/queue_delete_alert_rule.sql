-- Deletes what sluice_alert_rule has of a queue.
-- ?1 queue
delete from sluice_alert_rule where queue = ?1

-- Deletes a queue's rows in sluice_alert_rule.
-- ?1 queue
delete from sluice_alert_rule where queue = ?1

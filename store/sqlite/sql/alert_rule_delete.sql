-- Deletes a stored rule of alerts.
-- ?1 name   ?2 queue
delete from sluice_alert_rule where name = ?1 and queue = ?2

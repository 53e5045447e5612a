-- Deletes receivers that no process asks for any more.
-- ?1 seen before
delete from sluice_alert_receiver where seen < ?1

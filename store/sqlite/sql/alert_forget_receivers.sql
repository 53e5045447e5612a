-- Forgets receivers that nobody asks for any more.
-- ?1 seen before
delete from sluice_alert_receiver where seen < ?1

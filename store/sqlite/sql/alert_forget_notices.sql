-- Forgets what receivers were to be told that nobody asks for any more.
-- ?1 seen before
delete from sluice_alert_notice where receiver in (select name from sluice_alert_receiver where seen < ?1)

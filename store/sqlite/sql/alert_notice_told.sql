-- Strikes what a receiver was told.
-- ?1 seq
delete from sluice_alert_notice where seq = ?1

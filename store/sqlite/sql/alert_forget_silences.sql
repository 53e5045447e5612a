-- Deletes silences that are over.
-- ?1 now
delete from sluice_alert_silence where until <= ?1

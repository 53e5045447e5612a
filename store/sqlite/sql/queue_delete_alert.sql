-- Deletes a queue's rows in sluice_alert.
-- ?1 queue
delete from sluice_alert where queue = ?1

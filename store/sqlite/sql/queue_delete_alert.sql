-- Deletes what sluice_alert has of a queue.
-- ?1 queue
delete from sluice_alert where queue = ?1

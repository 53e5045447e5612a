-- Deletes what sluice_permit has of a queue.
-- ?1 queue
delete from sluice_permit where queue = ?1

-- Deletes what sluice_started has of a queue.
-- ?1 queue
delete from sluice_started where queue = ?1

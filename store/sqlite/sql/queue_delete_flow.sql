-- Deletes what sluice_flow has of a queue.
-- ?1 queue
delete from sluice_flow where queue = ?1

-- Deletes what sluice_queue has of a queue.
-- ?1 queue
delete from sluice_queue where name = ?1

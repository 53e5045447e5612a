-- Deletes what sluice_line has of a queue.
-- ?1 queue
delete from sluice_line where queue = ?1

-- Deletes the counts of a queue.
-- ?1 queue
delete from sluice_wave where queue = ?1

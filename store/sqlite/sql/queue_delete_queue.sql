-- Deletes a queue from sluice_queue.
-- ?1 queue
delete from sluice_queue where name = ?1

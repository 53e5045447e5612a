-- Deletes a queue's rows in sluice_started.
-- ?1 queue
delete from sluice_started where queue = ?1

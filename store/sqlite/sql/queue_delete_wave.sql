-- Deletes a queue's rows in sluice_wave.
-- ?1 queue
delete from sluice_wave where queue = ?1

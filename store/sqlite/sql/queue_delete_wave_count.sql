-- Deletes a queue's rows in sluice_wave_count.
-- ?1 queue
delete from sluice_wave_count where queue = ?1

-- Forgets when a queue was counted.
-- ?1 queue
delete from sluice_wave_count where queue = ?1

-- Deletes what sluice_wave_count has of a queue.
-- ?1 queue
delete from sluice_wave_count where queue = ?1

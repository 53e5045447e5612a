-- Deletes the time of a queue's last count.
-- ?1 queue
delete from sluice_wave_count where queue = ?1

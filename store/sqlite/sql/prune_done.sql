-- Deletes a finished life.
-- ?1 seq   ?2 generation
delete from sluice_done where seq = ?1 and generation = ?2

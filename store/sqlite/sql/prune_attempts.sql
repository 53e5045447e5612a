-- Deletes the failed attempts of a finished life.
-- ?1 seq   ?2 generation
delete from sluice_attempt where seq = ?1 and generation = ?2

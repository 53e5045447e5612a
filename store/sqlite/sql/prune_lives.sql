-- Deletes every finished life.
-- ?1 seq
delete from sluice_done where seq = ?1

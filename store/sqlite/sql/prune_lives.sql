-- Deletes every finished life of a job that a person wants gone.
-- ?1 seq
delete from sluice_done where seq = ?1

-- Deletes every failed attempt of a job that a person wants gone.
-- ?1 seq
delete from sluice_attempt where seq = ?1

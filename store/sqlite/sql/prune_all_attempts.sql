-- Deletes every failed attempt.
-- ?1 seq
delete from sluice_attempt where seq = ?1

-- Deletes holders that have sent no heartbeat for an hour.
-- ?1 an hour ago
delete from sluice_holder where seen < ?1

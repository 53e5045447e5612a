-- Deletes a queue's rows in sluice_permit.
-- ?1 queue
delete from sluice_permit where queue = ?1

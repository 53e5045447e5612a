-- Deletes a queue's rows in sluice_flow.
-- ?1 queue
delete from sluice_flow where queue = ?1

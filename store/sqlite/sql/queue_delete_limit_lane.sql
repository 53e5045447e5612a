-- Deletes a queue's rows in sluice_limit_lane.
-- ?1 queue
delete from sluice_limit_lane where queue = ?1

-- Deletes what sluice_limit_lane has of a queue.
-- ?1 queue
delete from sluice_limit_lane where queue = ?1

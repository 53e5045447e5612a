-- Deletes the lane of a limit key without parked jobs in a queue.
-- ?1 queue   ?2 key
delete from sluice_limit_lane where queue = ?1 and key = ?2

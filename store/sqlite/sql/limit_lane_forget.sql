-- Forgets a limit key of a queue that has no parked jobs.
-- ?1 queue   ?2 key
delete from sluice_limit_lane where queue = ?1 and key = ?2

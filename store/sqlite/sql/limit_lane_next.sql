-- Returns when parked jobs of a queue may get room; null: no jobs are parked.
-- ?1 queue
select min(wake_at) from sluice_limit_lane where queue = ?1

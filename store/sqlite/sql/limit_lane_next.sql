-- When parked jobs of a queue may get room (null: none are parked).
-- ?1 queue
select min(wake_at) from sluice_limit_lane where queue = ?1

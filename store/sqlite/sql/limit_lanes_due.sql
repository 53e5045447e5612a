-- Lists limit keys of a queue whose parked jobs may have got room, along the index sluice_limit_lane_wake.
-- ?1 queue   ?2 now   ?3 limit
select key from sluice_limit_lane where queue = ?1 and wake_at <= ?2 order by wake_at limit ?3 + 0

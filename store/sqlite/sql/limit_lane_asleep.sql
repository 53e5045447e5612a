-- Returns until when claims do not look at the parked jobs of a limit key; no row: a claim may look now.
-- ?1 queue   ?2 key   ?3 now
select wake_at from sluice_limit_lane where key = ?2 and queue = ?1 and wake_at > ?3

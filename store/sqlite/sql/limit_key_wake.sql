-- Makes claims look at the parked jobs of a limit key at once, in all queues.
-- ?1 key
update sluice_limit_lane set wake_at = 0 where key = ?1

-- Shortens the leases of an earlier boot, so that they end at most one lease from now, even if the clock was set back
-- since. The reboot ended all holders.
-- ?1 now   ?2 lease of queues without settings, in milliseconds
update sluice_live
set lease_until = ?1 + coalesce((select q.lease_ms from sluice_queue q where q.name = sluice_live.queue), ?2) * 1000
where state = 'claimed' and lease_until > ?1 + coalesce((select q.lease_ms from sluice_queue q where q.name = sluice_live.queue), ?2) * 1000

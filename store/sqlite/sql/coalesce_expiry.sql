-- Lets a waiting job that was never claimed expire when the newest job that coalesces into it would, if the job is due before
-- that; otherwise its expiry stays. A requeued job does not expire.
-- ?1 seq   ?2 expires_at or null
update sluice_live
set expires_at = iif(generation = 1 and (?2 is null or ?2 > due_at), ?2, expires_at)
where seq = ?1 and state = 'queued' and attempts + releases + recoveries = 0

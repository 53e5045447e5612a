-- Hands a job back to its queue: retry, release and recover. The token stays on the row, so that a repeated settlement
-- is recognized.
-- ?1 seq   ?2 attempts   ?3 releases to add   ?4 recoveries   ?5 due_at or null (as it is)   ?6 error or null (as it is)
update sluice_live
set state = 'queued', holder = null, ref = null, engine = null, run_of = null, claimed_at = null, dispatched_at = null, lease_until = null, attempts = ?2,
    releases = releases + ?3, recoveries = ?4, due_at = coalesce(?5, due_at), error = coalesce(?6, error)
where seq = ?1

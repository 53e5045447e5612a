-- Gives an uncertain job a new life: the next generation, due now.
-- ?1 seq   ?2 now
update sluice_live
set state = 'queued', due_at = ?2, expires_at = null, generation = generation + 1, attempts = 0, releases = 0, recoveries = 0,
    token = null, holder = null, claimed_at = null, dispatched_at = null, lease_until = null, ref = null, engine = null, run_of = null,
    error = null, checkpoint = null
where seq = ?1 and state = 'uncertain'

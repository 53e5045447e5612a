-- Delays a waiting job, but not longer after its enqueue than the longest wait. The job expires when the newest would: it
-- would otherwise expire before it is due. A requeued job does not expire.
-- ?1 seq   ?2 due_at   ?3 the longest wait in µs (null: no limit)   ?4 expires_at or null
update sluice_live
set due_at = min(?2, coalesce((select j.created_at + ?3 from sluice_job j where j.seq = ?1), ?2)), expires_at = iif(generation = 1, ?4, null)
where seq = ?1 and state = 'queued'

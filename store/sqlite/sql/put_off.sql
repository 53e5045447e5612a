-- Delays a waiting job, but not longer after its enqueue than the longest wait.
-- ?1 seq   ?2 due_at   ?3 the longest wait in µs (null: no limit)
update sluice_live
set due_at = min(?2, coalesce((select j.created_at + ?3 from sluice_job j where j.seq = ?1), ?2))
where seq = ?1 and state = 'queued'

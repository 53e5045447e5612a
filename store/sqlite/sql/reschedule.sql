-- Changes the due time of a queued job.
-- ?1 seq   ?2 due_at
update sluice_live set due_at = ?2 where seq = ?1 and state = 'queued'

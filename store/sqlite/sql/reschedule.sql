-- Changes when a queued job is due.
-- ?1 seq   ?2 due_at
update sluice_live set due_at = ?2 where seq = ?1 and state = 'queued'

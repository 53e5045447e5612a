-- Makes a queued job wait for itself until somebody releases it. The job leaves its tenant queue, and waits for no
-- limit meanwhile.
-- ?1 seq
update sluice_live set blocked_by = seq, in_tenant_queue = 0, parked = 0 where seq = ?1 and state = 'queued'

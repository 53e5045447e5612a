-- Notes that a finished life was left for a new one.
-- ?1 seq   ?2 generation   ?3 now
update sluice_done set requeued_at = ?3 where seq = ?1 and generation = ?2

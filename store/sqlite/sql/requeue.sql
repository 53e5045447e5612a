-- Records that a new life has replaced a finished life.
-- ?1 seq   ?2 generation   ?3 now
update sluice_done set requeued_at = ?3 where seq = ?1 and generation = ?2

-- Records when a job expires that was put off in its first life.
-- ?1 seq   ?2 expires_at or null
update sluice_job set expires_at = ?2 where seq = ?1 and (select l.generation from sluice_live l where l.seq = ?1) = 1

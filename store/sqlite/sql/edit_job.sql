-- Gives a job another content.
-- ?1 seq   ?2 tenant   ?3 priority   ?4 payload   ?5 labels as JSON or null
update sluice_job set tenant = ?2, priority = ?3, payload = ?4, labels = ?5 where seq = ?1

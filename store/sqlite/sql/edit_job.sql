-- Changes the content of a job.
-- ?1 seq   ?2 tenant   ?3 priority   ?4 payload   ?5 labels as JSON or null   ?6 timeout_ms or null   ?7 limit key or null   ?8 cost or null
update sluice_job set tenant = ?2, priority = ?3, payload = ?4, labels = ?5, timeout_ms = ?6, limit_key = ?7, cost = ?8 where seq = ?1

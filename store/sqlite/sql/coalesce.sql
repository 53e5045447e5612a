-- Replaces the payload and labels of a waiting job by those of the newest job that coalesces into it. The expiry becomes
-- that of the live row. The statement runs after coalesce_expiry.sql, if that has found the job.
-- ?1 seq   ?2 payload   ?3 labels as JSON or null
update sluice_job
set payload = ?2, labels = ?3,
    expires_at = (select iif(l.generation = 1, l.expires_at, sluice_job.expires_at) from sluice_live l where l.seq = ?1)
where seq = ?1

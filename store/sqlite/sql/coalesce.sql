-- Replaces the payload and labels of a waiting job that was never claimed, by those of the newest job that coalesces
-- into it.
-- ?1 seq   ?2 payload   ?3 labels as JSON or null
update sluice_job
set payload = ?2, labels = ?3
where seq = (select l.seq from sluice_live l
             where l.seq = ?1 and l.state = 'queued' and l.attempts + l.releases + l.recoveries = 0)

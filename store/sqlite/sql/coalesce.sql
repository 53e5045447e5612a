-- Gives a job that waits, and was never handed out, the payload and labels of the newest that was coalesced into it.
-- ?1 seq   ?2 payload   ?3 labels as JSON or null
update sluice_job
set payload = ?2, labels = ?3
where seq = (select l.seq from sluice_live l
             where l.seq = ?1 and l.state = 'queued' and l.attempts + l.releases + l.recoveries = 0)

-- Who holds a key, until when, and whether that job still lives.
-- ?1 queue   ?2 key
select k.job_id, k.until, l.seq, l.state, l.blocked_by
from sluice_job_key k
left join sluice_job j on j.id = k.job_id
left join sluice_live l on l.seq = j.seq
where k.queue = ?1 and k.key = ?2

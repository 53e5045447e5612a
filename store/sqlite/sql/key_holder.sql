-- Reads the holder of a key: the job, until when it holds the key, whether it still lives, the twin that it waits for,
-- and its tenant. Of a deleted job the tenant is null.
-- ?1 queue   ?2 key
select k.job_id, k.until, l.seq, l.state,
       (select b.seq from sluice_live b join sluice_job t on t.seq = b.seq
        where b.seq = iif(l.blocked_by = l.seq, h.behind, l.blocked_by) and t.queue = k.queue and t.key = k.key),
       coalesce(l.tenant, j.tenant)
from sluice_job_key k
left join sluice_job j on j.id = k.job_id
left join sluice_live l on l.seq = j.seq
left join sluice_hold h on h.job_id = k.job_id
where k.queue = ?1 and k.key = ?2

-- Reads one job in any state, and until when it holds its key (0: while it is unfinished; null: it holds none).
-- ?1 id
select seq, {{job}}, state, {{life}}, lease_until, ref,
       (select b.id from sluice_job b where b.seq = sluice_jobs.blocked_by), finished_at, error, payload, checkpoint, result,
       {{more}}, engine,
       (select coalesce(k.until, 0) from sluice_job_key k
        where k.queue = sluice_jobs.queue and k.key = sluice_jobs.key and k.job_id = sluice_jobs.id)
from sluice_jobs
where id = ?1

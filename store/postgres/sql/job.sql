-- Reads one job in any state, and until when it holds its key (-infinity: while it is unfinished; null: it holds none).
-- $1 uuid id
select {{job}}, state, {{life}}, lease_until, ref, blocked_by, finished_at, error, payload, checkpoint, result,
       {{more}}, engine,
       (select coalesce(k.until, '-infinity') from sluice.job_key k
        where k.queue = jobs.queue and k.key = jobs.key and k.job_id = jobs.id), now()
from sluice.jobs
where id = $1::uuid

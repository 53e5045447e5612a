-- Reads one job, like job.sql, for roles that may not select payload, checkpoint and result. The column before the
-- clock says until when the job holds its key (-infinity: while it is unfinished; null: it holds none).
-- $1 uuid id
select {{job}}, state, {{life}}, lease_until, ref, blocked_by, finished_at, error, null::bytea, null::bytea, null::bytea,
       {{more}}, engine,
       (select coalesce(k.until, '-infinity') from sluice.job_key k
        where k.queue = jobs.queue and k.key = jobs.key and k.job_id = jobs.id), now()
from sluice.job_status jobs
where id = $1::uuid

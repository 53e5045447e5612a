-- Lists the jobs of a list that are stored, or whose key another job holds.
-- $1 uuid[] ids   $2 text[] queues   $3 text[] keys (null: the job has none, or does not keep the first job)
select g.id
from unnest($1::uuid[], $2::text[], $3::text[]) as g(id, queue, key)
where coalesce((select true from sluice.job j where j.id = g.id limit 1),
               (select case when k.until is null then (select true from sluice.live l where l.id = k.job_id limit 1)
                            else k.until > clock_timestamp() end
                from sluice.job_key k where k.queue = g.queue and k.key = g.key limit 1), false)

-- Replaces the payload and labels of a waiting job that was never claimed, by those of the newest job that coalesces
-- into it. The job expires when the newest would, if the job is due before that; otherwise its expiry stays. A requeued
-- job does not expire. The statement always writes the live row, so that a claim under way reads the job again with its
-- new payload.
-- $1 uuid id   $2 bytea payload   $3 text labels as JSON ('': none)   $4 timestamptz expires_at (null: never)
with waiting as (
    update sluice.live
    set expires_at = case when generation = 1 and coalesce($4::timestamptz, 'infinity') > due_at then $4::timestamptz else expires_at end
    where id = $1::uuid and state = 'queued' and attempts + releases + recoveries = 0
    returning id, generation, expires_at
)
update sluice.job j
set payload = $2::bytea, labels = nullif($3::text, '')::jsonb, expires_at = case when w.generation = 1 then w.expires_at else j.expires_at end
from waiting w
where j.id = w.id
returning j.id

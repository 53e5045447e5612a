-- Replaces the payload and labels of a waiting job that was never claimed, by those of the newest job that coalesces
-- into it. The statement also writes the live row, so that a claim under way reads the job again with its new payload.
-- $1 uuid id   $2 bytea payload   $3 text labels as JSON ('': none)
with waiting as (
    update sluice.live
    set due_at = due_at
    where id = $1::uuid and state = 'queued' and attempts + releases + recoveries = 0
    returning id
)
update sluice.job j
set payload = $2::bytea, labels = nullif($3::text, '')::jsonb
from waiting w
where j.id = w.id
returning j.id

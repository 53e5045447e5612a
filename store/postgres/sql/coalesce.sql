-- Gives a job that waits, and was never handed out, the payload and labels of the newest that was coalesced into it. Its
-- live row is written as well, so that a claim under way takes it with the next look instead of with the payload before.
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

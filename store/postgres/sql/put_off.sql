-- Delays a waiting job, but not longer after its enqueue than the longest wait. The job expires when the newest would: it
-- would otherwise expire before it is due. A requeued job does not expire.
-- $1 uuid id   $2 timestamptz due_at (null: now)   $3 interval delay   $4 interval the longest wait (null: no limit)
-- $5 timestamptz expires_at (null: never)
with put_off as (
    update sluice.live l
    set due_at = least(coalesce($2::timestamptz, statement_timestamp() + $3::interval, now()),
                       (select j.created_at + $4::interval from sluice.job j where j.id = $1::uuid)),
        expires_at = case when l.generation = 1 then $5::timestamptz end, in_tenant_queue = false
    where l.id = $1::uuid and l.state = 'queued'
    returning l.id, l.generation
)
update sluice.job j
set expires_at = $5::timestamptz
from put_off p
where j.id = p.id and p.generation = 1 and j.id = $1::uuid and j.expires_at is distinct from $5::timestamptz

-- Delays a waiting job, but not longer after its enqueue than the longest wait.
-- $1 uuid id   $2 timestamptz due_at (null: now)   $3 interval delay   $4 interval the longest wait (null: no limit)
update sluice.live l
set due_at = least(coalesce($2::timestamptz, now() + coalesce($3::interval, '0')),
                   (select j.created_at + $4::interval from sluice.job j where j.id = $1::uuid)),
    in_tenant_queue = false
where l.id = $1::uuid and l.state = 'queued'

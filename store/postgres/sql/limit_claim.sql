-- Claims the jobs that limits per key and by cost admitted. The caller found and locked them in the same transaction.
-- If somebody deleted a row in sluice.job, created_at is null: see orphans_drop.sql.
-- $1 text queue   $2 uuid[] jobs   $3 uuid token   $4 text holder   $5 interval lease   $6 timestamptz the instant of the claim
-- $7 text[] tenants that may reach their concurrency; only ends of their jobs add tenant changes, to save writes
with claimed as (
    update sluice.live l
    set state = 'claimed', token = $3::uuid, holder = $4::text, claimed_at = $6::timestamptz, lease_until = now() + $5::interval,
        in_tenant_queue = l.tenant = any ($7::text[])
    where l.id = any ($2::uuid[]) and l.queue = $1::text and coalesce(l.state = 'queued' and l.blocked_by is null, false)
    returning l.*
), audited as (
    insert into sluice.audit (at, actor, object, name, event, job_id, generation, from_state, to_state)
    select c.claimed_at, $4::text, 'job', c.queue, 'claim', c.id, c.generation, 'queued', 'claimed'
    from claimed c
    where exists (select from sluice.queue q where q.name = $1::text and q.audit = 'full')
)
select {{c.claimed}}, {{j.given}},
       {{j.more}}
from claimed c
left join lateral (select * from sluice.job w where w.id = c.id offset 0) j on true

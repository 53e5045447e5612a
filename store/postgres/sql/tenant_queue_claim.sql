-- Claims jobs from tenant queues of a queue, from each up to its share: the lowest priority number first, then the
-- longest due. Each tenant queue and priority is a short walk along the index live_tenant_queue from its low-water mark
-- on. If somebody deleted a row in sluice.job, created_at is null: see orphans_drop.sql.
-- $1 text queue   $2 text[] tenants   $3 integer[] shares   $4 integer[] priorities of each as bits
-- $5 timestamptz[] and $6 uuid[] the low-water marks, ten for each tenant queue   $7 smallint[] priorities, in order
-- $8 uuid token   $9 text holder   $10 interval lease   $11 timestamptz the instant of the claim   $12 interval how soon
-- $13 text[] tenants that may reach their concurrency; only ends of their jobs add tenant changes, to save writes
with claimed as (
    update sluice.live l
    set state = 'claimed', token = $8::uuid, holder = $9::text, claimed_at = $11::timestamptz, lease_until = now() + $10::interval,
        in_tenant_queue = l.tenant = any ($13::text[])
    where l.ctid = any (array(
        select due.place
        from unnest($2::text[], $3::integer[], $4::integer[]) with ordinality as tenant_queue(tenant, share, jobs, no)
        cross join lateral (
            select first.place
            from unnest($7::smallint[]) as p(priority)
            cross join lateral (
                select w.ctid as place
                from sluice.live w
                where w.queue = $1::text and w.tenant = tenant_queue.tenant and w.priority = p.priority and w.state = 'queued'
                  and w.blocked_by is null and w.in_tenant_queue
                  and (w.due_at, w.id) > (($5::timestamptz[])[(tenant_queue.no - 1) * 10 + p.priority], ($6::uuid[])[(tenant_queue.no - 1) * 10 + p.priority])
                  and w.due_at <= now() + $12::interval and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
                order by w.due_at, w.id
                limit tenant_queue.share
                for update skip locked
            ) first
            where tenant_queue.jobs & (1 << p.priority) <> 0
            limit tenant_queue.share
        ) due
    ))
    returning l.*
), audited as (
    insert into sluice.audit (at, actor, object, name, event, job_id, generation, from_state, to_state)
    select c.claimed_at, $9::text, 'job', c.queue, 'claim', c.id, c.generation, 'queued', 'claimed'
    from claimed c
    where exists (select from sluice.queue q where q.name = $1::text and q.audit = 'full')
)
select {{c.claimed}}, {{j.given}},
       {{j.more}}
from claimed c
left join lateral (select * from sluice.job w where w.id = c.id offset 0) j on true

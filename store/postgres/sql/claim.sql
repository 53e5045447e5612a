-- Claims jobs of one queue that are due, or will be soon: the lowest priority number first, then the longest due. Each
-- priority is a short walk along the index live_claim from its low-water mark on. So the walk skips jobs that are not
-- due, and dead index entries. The update finds the locked rows by their ctid. If somebody deleted a row in sluice.job,
-- created_at is null: see orphans_drop.sql. A job that changed a moment ago may have a place that this claim cannot see
-- yet; the next claim gets it.
-- $1 text queue   $2 smallint[] priorities, in order   $3 timestamptz[] and $4 uuid[] the low-water mark of each
-- $5 integer limit   $6 uuid token   $7 text holder   $8 interval lease
-- $9 boolean whether the caller has checked the queue's limits; if not, a queue with limits gives nothing, and a queue that
-- serves its tenants in turns gives nothing
-- $10 timestamptz the instant of the claim, where claims must be in order (null: now)   $11 interval how soon
-- $12 text the engine that the holder hands jobs to; a queue with another engine gives nothing
with claimed as (
    update sluice.live l
    set state = 'claimed', token = $6::uuid, holder = $7::text, claimed_at = coalesce($10::timestamptz, now()),
        lease_until = now() + $8::interval
    where l.ctid = any (array(
        select due.place
        from unnest($2::smallint[], $3::timestamptz[], $4::uuid[]) as mark(priority, due_at, id)
        cross join lateral (
            select w.ctid as place
            from sluice.live w
            where w.queue = $1::text and w.priority = mark.priority and w.state = 'queued' and w.blocked_by is null and not w.in_tenant_queue
              and (w.due_at, w.id) > (mark.due_at, mark.id) and w.due_at <= now() + $11::interval
              and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
            order by w.due_at, w.id
            limit $5::integer
            for update skip locked
        ) due
        where coalesce((
            select q.engine = $12::text and not (q.paused and (q.paused_until is null or q.paused_until > now()))
                   and ($9::boolean or not (q.rate > 0 or q.concurrency > 0 or q.limits <> '' or q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0))
            from sluice.queue q where q.name = $1::text
          ), $12::text = '')
          and ($9::boolean or not exists (select from sluice.tenant_limit t where t.queue in ($1::text, '') and t.given))
        limit $5::integer
    ))
    returning l.*
), audited as (
    insert into sluice.audit (at, actor, object, name, event, job_id, generation, from_state, to_state)
    select c.claimed_at, $7::text, 'job', c.queue, 'claim', c.id, c.generation, 'queued', 'claimed'
    from claimed c
    where exists (select from sluice.queue q where q.name = $1::text and q.audit = 'full')
)
select {{c.claimed}}, {{j.given}},
       {{j.more}}
from claimed c
left join lateral (select * from sluice.job w where w.id = c.id offset 0) j on true

-- Puts due jobs of a queue into the tenant queues: jobs that came back, and jobs that were stored before the queue
-- served its tenants in turns. Each priority is a walk along the index live_claim from its low-water mark on.
-- $1 text queue   $2 smallint[] priorities   $3 timestamptz[] and $4 uuid[] the low-water mark of each   $5 integer limit
-- $6 interval how soon
update sluice.live l
set in_tenant_queue = true
where l.ctid = any (array(
    select due.place
    from unnest($2::smallint[], $3::timestamptz[], $4::uuid[]) as mark(priority, due_at, id)
    cross join lateral (
        select w.ctid as place
        from sluice.live w
        where w.queue = $1::text and w.priority = mark.priority and w.state = 'queued' and w.blocked_by is null and not w.in_tenant_queue
          and (w.due_at, w.id) > (mark.due_at, mark.id) and w.due_at <= now() + $6::interval
        order by w.due_at, w.id
        limit $5::integer
        for update skip locked
    ) due
    limit $5::integer
))
returning l.tenant, l.priority, l.due_at, l.id

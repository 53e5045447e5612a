-- Returns the milliseconds until the next job of a queue may be claimed, tenant queues aside; null: no job waits, or
-- the queue is paused. It also returns whether the queue has limits or jobs in tenant queues, and its engine.
-- $1 text queue   $2 smallint[] priorities   $3 timestamptz[] and $4 uuid[] the low-water mark of each
-- $5 interval how long before its due time a job may be claimed
select (extract(epoch from min(due.due_at) - $5::interval - now()) * 1000)::bigint,
       exists (select from sluice.queue q where q.name = $1::text
               and (q.rate > 0 or q.concurrency > 0 or q.limits <> '' or q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0))
       or exists (select from sluice.tenant_limit t where t.queue in ($1::text, '') and t.given)
       or (select true from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
           order by l.due_at limit 1) is not null,
       coalesce((select q.engine from sluice.queue q where q.name = $1::text), '')
from unnest($2::smallint[], $3::timestamptz[], $4::uuid[]) as mark(priority, due_at, id)
cross join lateral (
    select w.due_at
    from sluice.live w
    where w.queue = $1::text and w.priority = mark.priority and w.state = 'queued' and w.blocked_by is null and not w.in_tenant_queue
      and (w.due_at, w.id) > (mark.due_at, mark.id)
      and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
    order by w.due_at, w.id
    limit 1
) due
where not exists (select from sluice.queue q where q.name = $1::text and q.paused and (q.paused_until is null or q.paused_until > now()))

-- Finds and locks the jobs that a claim of a queue with limits per key or by cost would take; see claim.sql.
-- $1 text queue   $2 smallint[] priorities, in order   $3 timestamptz[] and $4 uuid[] the low-water mark of each   $5 integer limit
-- $6 interval how soon   $7 text the engine that the holder hands jobs to; a queue with another engine gives nothing
select due.id, due.keyed
from unnest($2::smallint[], $3::timestamptz[], $4::uuid[]) with ordinality as mark(priority, due_at, id, no)
cross join lateral (
    select w.id, w.due_at, w.limit_key is not null as keyed
    from sluice.live w
    where w.queue = $1::text and w.priority = mark.priority and w.state = 'queued' and w.blocked_by is null and not w.in_tenant_queue
      and (w.due_at, w.id) > (mark.due_at, mark.id) and w.due_at <= now() + $6::interval
      and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
    order by w.due_at, w.id
    limit $5::integer
    for update skip locked
) due
where coalesce((
    select q.engine = $7::text and not (q.paused and (q.paused_until is null or q.paused_until > now())) from sluice.queue q where q.name = $1::text
), $7::text = '')
limit $5::integer

-- What is known of a job's turn: what is due before it, what is in flight in its queue, and the queue's rate. Each
-- count is a walk along an index and stops at the limit.
-- $1 uuid id   $2 integer limit
select now(),
    least($2::integer,
        (select count(*)
         from generate_series(1, l.priority - 1) as p(priority)
         cross join lateral (select from sluice.live w where w.queue = l.queue and w.priority = p.priority and w.state = 'queued'
             and w.blocked_by is null and w.due_at <= now() limit $2::integer) earlier)
        + (select count(*) from (select from sluice.live w where w.queue = l.queue and w.priority = l.priority and w.state = 'queued'
             and w.blocked_by is null and w.due_at <= now() and (w.due_at, w.id) < (l.due_at, l.id) limit $2::integer) same)),
    least($2::integer,
        (select count(*) from (select from sluice.live w where w.queue = j.queue and w.state = 'claimed' limit $2::integer) c)
        + (select count(*) from (select from sluice.live w where w.queue = j.queue and w.state = 'dispatched' limit $2::integer) d)),
    q.rate, q.burst, f.tokens, f.filled_at
from sluice.job j
left join sluice.live l on l.id = j.id and l.state = 'queued'
left join sluice.queue q on q.name = j.queue
left join sluice.flow f on f.queue = j.queue
where j.id = $1::uuid

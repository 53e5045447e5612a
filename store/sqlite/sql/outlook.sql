-- What is known of a job's turn: what is due before it, what is in flight in its queue, and the queue's rate. Each
-- count is a walk along an index and stops at the limit.
-- ?1 id   ?2 now   ?3 limit
with priority (p) as (values (1), (2), (3), (4), (5), (6), (7), (8), (9))
select
    min(?3,
        (select coalesce(sum((select count(*) from (select 1 from sluice_live w where w.queue = l.queue and w.priority = p
            and w.state = 'queued' and w.blocked_by is null and w.due_at <= ?2 limit ?3))), 0) from priority where p < l.priority)
        + (select count(*) from (select 1 from sluice_live w where w.queue = l.queue and w.priority = l.priority
            and w.state = 'queued' and w.blocked_by is null and w.due_at <= ?2 and (w.due_at, w.seq) < (l.due_at, l.seq) limit ?3))),
    min(?3,
        (select count(*) from (select 1 from sluice_live w where w.queue = j.queue and w.state = 'claimed' limit ?3))
        + (select count(*) from (select 1 from sluice_live w where w.queue = j.queue and w.state = 'dispatched' limit ?3))),
    q.rate, q.burst, f.tokens, f.filled_at
from sluice_job j
left join sluice_live l on l.seq = j.seq and l.state = 'queued'
left join sluice_queue q on q.name = j.queue
left join sluice_flow f on f.queue = j.queue
where j.id = ?1

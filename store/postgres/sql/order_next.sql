-- Locks the first job behind each requeued job in its order, if that one waits, until the transaction ends. Returns the jobs for
-- which the locked ones wait. Other transactions do not see the requeued job yet, and could let the job behind it go. They skip
-- a locked job; the caller looks at it after its commit. The caller repeats the statement until two answers are the same,
-- because the first job may have ended while the statement waited. In an order whose first job was not requeued, the statement
-- locks nothing: the requeued job waits too.
-- $1 uuid[] requeued jobs
with next as materialized (
    select n.id
    from unnest($1::uuid[]) as g(id)
    cross join lateral (select l.queue, l.order_key, l.order_place from sluice.live l where l.id = g.id offset 0) p
    cross join lateral (
        select l.id from sluice.live l
        where l.queue = p.queue and l.order_key = p.order_key
        order by l.order_place
        limit 1
    ) f
    cross join lateral (
        select l.id from sluice.live l
        where l.queue = p.queue and l.order_key = p.order_key and l.order_place > p.order_place
        order by l.order_place
        limit 1
    ) n
    where f.id = any ($1::uuid[])
)
select l.id, l.blocked_by
from sluice.live l
where l.id = any (array(select id from next)) and coalesce(l.blocked_by is not null, false) and not l.parked
order by l.id
for update

-- Locks claims of a queue whose lease ran out, the longest ago first. The statement skips claims with an intended run,
-- because only the engine knows about the run. It skips locked rows, because their holder settles them now.
-- $1 text queue   $2 integer limit   $3 bigint max_recoveries of a queue without settings
select l.id, l.token, l.holder, l.recoveries + 1,
       l.recoveries + 1 >= coalesce((select q.max_recoveries from sluice.queue q where q.name = l.queue), $3::bigint)
from sluice.live l
where l.state = 'claimed' and l.lease_until < now() and l.queue = $1::text and l.engine is null
order by l.lease_until, l.id
limit $2::integer
for update of l skip locked

-- The settings and the tokens of a queue with limits, locked until the claim has been committed. Nothing, if
-- another claim has the lock.
-- $1 text queue
select q.paused and (q.paused_until is null or q.paused_until > clock_timestamp()), q.rate, q.burst, q.in_flight_limit, q.version,
       f.tokens, f.filled_at, f.claimed_at, f.counted_from, f.version, f.counted_since, clock_timestamp()
from sluice.flow f
join sluice.queue q on q.name = f.queue
where f.queue = $1::text
for update of f skip locked

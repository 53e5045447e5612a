-- What the settings of a queue say to a claim, and what its rate has left.
-- ?1 queue   ?2 now
select q.paused and (q.paused_until is null or q.paused_until > ?2), q.audit = 'full', q.rate, q.burst, q.in_flight_limit, f.tokens, f.filled_at
from sluice_queue q
left join sluice_flow f on f.queue = q.name
where q.name = ?1

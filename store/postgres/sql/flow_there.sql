-- Whether a queue has limits that are kept by a row, which another claim has locked.
-- $1 text queue
select exists (
    select from sluice.flow f join sluice.queue q on q.name = f.queue
    where f.queue = $1::text and (q.rate > 0 or q.in_flight_limit > 0)
)

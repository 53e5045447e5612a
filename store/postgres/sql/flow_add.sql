-- Gives a queue that has limits its row, once.
-- $1 text queue
insert into sluice.flow (queue)
select name from sluice.queue where name = $1::text and (rate > 0 or in_flight_limit > 0)
on conflict (queue) do nothing

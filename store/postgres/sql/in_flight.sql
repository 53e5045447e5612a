-- Counts what is in flight in a queue, up to a limit, while the lock on its flow keeps others from claiming. Of one
-- state after the other, so that each is a walk along its index.
-- $1 text queue   $2 integer limit
select (select count(*) from (select from sluice.live where queue = $1::text and state = 'claimed' limit $2::integer) c)
     + (select count(*) from (select from sluice.live where queue = $1::text and state = 'dispatched' limit $2::integer) d)

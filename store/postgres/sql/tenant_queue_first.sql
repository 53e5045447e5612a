-- The first active tenant queues of a queue, in the order of turns; a walk along the index tenant_queue_turn from the mark on.
-- $1 text queue   $2 double precision turn and $3 text tenant of the mark   $4 integer limit
select ctid, tenant, turn, jobs, tokens, filled_at, counted_from
from sluice.tenant_queue
where queue = $1::text and active and (turn, tenant collate "C") >= ($2::double precision, $3::text)
order by turn, tenant collate "C"
limit $4::integer

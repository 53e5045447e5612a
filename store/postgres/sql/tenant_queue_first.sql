-- Lists the first active tenant queues of a queue in the order of turns, along the index tenant_queue_virtual_start
-- from the low-water mark on.
-- $1 text queue   $2 double precision virtual_start and $3 text tenant of the low-water mark   $4 integer limit
select ctid, tenant, virtual_start, jobs, tokens, filled_at, counted_from
from sluice.tenant_queue
where queue = $1::text and active and (virtual_start, tenant collate "C") >= ($2::double precision, $3::text)
order by virtual_start, tenant collate "C"
limit $4::integer

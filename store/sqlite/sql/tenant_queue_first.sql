-- Lists the first active tenant queues of a queue in the order of turns, along the index
-- sluice_tenant_queue_virtual_start from the low-water mark on.
-- ?1 queue   ?2 virtual_start and ?3 tenant of the low-water mark   ?4 limit
select tenant, virtual_start, jobs, tokens, filled_at
from sluice_tenant_queue
where queue = ?1 and active = 1 and (virtual_start, tenant) >= (?2, ?3)
order by virtual_start, tenant
limit ?4 + 0

-- The first active tenant queues of a queue, in the order of turns; a walk along the index sluice_tenant_queue_turn.
-- ?1 queue   ?2 turn and ?3 tenant of the mark   ?4 limit
select tenant, turn, jobs, tokens, filled_at
from sluice_tenant_queue
where queue = ?1 and active = 1 and (turn, tenant) >= (?2, ?3)
order by turn, tenant
limit ?4 + 0

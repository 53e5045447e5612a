-- Finds a finished job, to give it a new life in the same transaction.
-- ?1 id
select j.seq, j.queue, j.tenant, j.priority, j.key, d.generation, d.outcome, j.order_key is not null or j.after is not null, j.batch_id, j.limit_key, j.cost
from sluice_job j
join sluice_done d on d.seq = j.seq and d.requeued_at is null
where j.id = ?1 and not exists (select 1 from sluice_live l where l.seq = j.seq)

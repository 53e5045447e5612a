-- Makes the live rows of new jobs that are due now and have no key, all at once.
-- ?1 JSON list of seqs   ?2 due_at   ?3 in_tenant_queue
insert into sluice_live (seq, queue, tenant, priority, due_at, expires_at, keyed, blocked_by, generation, in_tenant_queue, batch_id, limit_key, cost)
select seq, queue, tenant, priority, ?2, expires_at, 0, null, 1, ?3, batch_id, limit_key, coalesce(cost, 1)
from sluice_job
where seq in (select value from json_each(?1))

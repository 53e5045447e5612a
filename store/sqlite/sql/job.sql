-- One job, whatever its state.
-- ?1 id
select seq, id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at, state, generation, due_at, attempts,
       releases, recoveries, holder, claimed_at, lease_until, ref,
       (select b.id from sluice_job b where b.seq = sluice_jobs.blocked_by), finished_at, error, payload, checkpoint, result,
       order_key, after, after_failure, engine
from sluice_jobs
where id = ?1

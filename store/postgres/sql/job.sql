-- One job, whatever its state.
-- $1 uuid id
select id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at, state, generation, due_at, attempts,
       releases, recoveries, holder, claimed_at, lease_until, ref, blocked_by, finished_at, error, payload, checkpoint, result,
       order_key, after, after_failure, engine
from sluice.jobs
where id = $1::uuid

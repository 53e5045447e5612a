-- Records the run of a job that ends before its engine reported the run's end, if such a run may exist.
-- ?1 seq   ?2 now
insert into sluice_orphan_run (job_id, queue, tenant, generation, engine, ref, cancelled_at, claimed_at, started, limit_key, cost)
select run_of, queue, tenant, generation, engine, ref, ?2, claimed_at, state = 'dispatched', limit_key, cost
from sluice_live where seq = ?1 and engine is not null and ref is not null
on conflict (job_id, ref) do nothing

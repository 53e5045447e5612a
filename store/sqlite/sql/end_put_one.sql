-- Copies a job that ends into the history, with its result, error and other facts of its end.
-- ?1 outcome   ?2 now   ?3 seq   ?4 result or null   ?5 error or null   ?6 attempts   ?7 recoveries
insert into sluice_done (seq, generation, queue, tenant, outcome, due_at, claimed_at, dispatched_at, finished_at, attempts, releases,
                         recoveries, token, holder, ref, result, error)
select seq, generation, queue, tenant, ?1, due_at, claimed_at, dispatched_at, ?2, ?6, releases, ?7, token, holder, ref, ?4, coalesce(?5, error)
from sluice_live
where seq = ?3

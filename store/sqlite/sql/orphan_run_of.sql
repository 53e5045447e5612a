-- Lists the orphan runs of a job, in the order in which its lives ended.
-- ?1 job   ?2 limit
select job_id, queue, engine, ref, cancelled_at, tenant, generation, claimed_at, started, terminate, beside
from sluice_orphan_run
where job_id = ?1
order by cancelled_at, ref
limit ?2 + 0

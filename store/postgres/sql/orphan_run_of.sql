-- Lists the orphan runs of a job, in the order in which its lives ended.
-- $1 uuid job   $2 integer limit
select job_id, queue, engine, ref, cancelled_at, tenant, generation, claimed_at, started, terminate, beside
from sluice.orphan_run
where job_id = $1::uuid
order by cancelled_at, ref
limit $2::integer

-- Lists a page of the orphan runs of a queue, in the order in which their jobs ended.
-- ?1 queue   ?2 after: cancelled at   ?3 after: job   ?4 limit   ?5 after: ref
select job_id, queue, engine, ref, cancelled_at, tenant, generation, claimed_at, started, terminate, beside
from sluice_orphan_run
where queue = ?1 and (cancelled_at, job_id, ref) > (?2, ?3, ?5)
order by cancelled_at, job_id, ref
limit ?4 + 0

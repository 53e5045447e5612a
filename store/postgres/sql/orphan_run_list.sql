-- Lists a page of the orphan runs of a queue, in the order in which their jobs ended.
-- $1 text queue   $2 timestamptz after: cancelled at   $3 uuid after: job   $4 integer limit   $5 text after: ref
select job_id, queue, engine, ref, cancelled_at, tenant, generation, claimed_at, started, terminate, beside
from sluice.orphan_run
where queue || '' = $1::text and (cancelled_at, uuid_send(job_id), ref) > ($2::timestamptz, uuid_send($3::uuid), $5::text)
order by cancelled_at, uuid_send(job_id), ref
limit $4::integer

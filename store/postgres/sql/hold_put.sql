-- Records the holds of jobs that the same transaction enqueued. Each held job waits for itself.
-- $1 uuid[] ids, sorted   $2 text[] queues   $3 text[] reasons   $4 text by whom
-- $5 uuid[] the job that each would wait for without its hold, or null
with put as (
    insert into sluice.hold (job_id, queue, reason, actor, behind)
    select g.id, g.queue, g.reason, $4::text, g.behind
    from unnest($1::uuid[], $2::text[], $3::text[], $5::uuid[]) as g(id, queue, reason, behind)
    returning job_id, queue, reason
)
insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason)
select $4::text, 'job', queue, 'hold', job_id, 1, 'queued', 'queued', reason
from put

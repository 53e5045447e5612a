-- Audits writes that were refused because their token is not the job's.
-- $1 uuid[] ids   $2 text[] queues   $3 text[] states   $4 text[] the refused writes   $5 text[] by whom
insert into sluice.audit (actor, object, name, event, job_id, from_state, to_state, reason)
select g.actor, 'job', g.queue, 'lost', g.id, g.state, g.state, g.reason
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as g(id, queue, state, reason, actor)

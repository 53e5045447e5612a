-- 0023 When the engine had taken a job's run.
-- locks: live and done, for a moment.
-- works with programs from: 8
-- Older programs do not note it, and leave what is noted of a run that they hand back.

alter table sluice.live add column dispatched_at timestamptz;
alter table sluice.done add column dispatched_at timestamptz;

create or replace view sluice.jobs as
select j.id, j.queue, j.tenant, j.priority, j.key, j.labels, j.max_attempts, j.created_at, j.expires_at,
       coalesce(l.state, d.outcome) as state,
       coalesce(l.generation, d.generation) as generation,
       coalesce(l.due_at, d.due_at) as due_at,
       coalesce(l.attempts, d.attempts) as attempts,
       coalesce(l.releases, d.releases) as releases,
       coalesce(l.recoveries, d.recoveries) as recoveries,
       case when l.id is null then d.holder else l.holder end as holder,
       case when l.id is null then d.claimed_at else l.claimed_at end as claimed_at,
       l.lease_until, l.blocked_by,
       case when l.id is null then d.ref else l.ref end as ref,
       case when l.id is null then d.error else l.error end as error,
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, l.engine,
       sluice._text_of(j.payload) as payload_text,
       sluice._text_of(d.result) as result_text,
       case when l.id is null then d.dispatched_at else l.dispatched_at end as dispatched_at
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select * from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true;

create or replace view sluice.job_status as
select id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at, state, generation, due_at, attempts,
       releases, recoveries, holder, claimed_at, lease_until, blocked_by, ref, error, finished_at, order_key, after,
       after_failure, engine, dispatched_at
from sluice.jobs;

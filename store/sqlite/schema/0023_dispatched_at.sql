-- 0023 When the engine had taken a job's run.
-- works with programs from: 8
-- Older programs do not note it, and leave what is noted of a run that they hand back.

alter table sluice_live add column dispatched_at integer;
alter table sluice_done add column dispatched_at integer;

drop view sluice_jobs;
create view sluice_jobs as
select j.seq, j.id, j.queue, j.tenant, j.priority, j.key, j.labels, j.max_attempts, j.created_at, j.expires_at,
       coalesce(l.state, d.outcome) as state,
       coalesce(l.generation, d.generation) as generation,
       coalesce(l.due_at, d.due_at) as due_at,
       coalesce(l.attempts, d.attempts) as attempts,
       coalesce(l.releases, d.releases) as releases,
       coalesce(l.recoveries, d.recoveries) as recoveries,
       iif(l.seq is null, d.holder, l.holder) as holder,
       iif(l.seq is null, d.claimed_at, l.claimed_at) as claimed_at,
       l.lease_until, l.blocked_by,
       iif(l.seq is null, d.ref, l.ref) as ref,
       iif(l.seq is null, d.error, l.error) as error,
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, l.engine,
       iif(l.seq is null, d.dispatched_at, l.dispatched_at) as dispatched_at
from sluice_job j
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq
    and d.generation = (select max(generation) from sluice_done x where x.seq = j.seq);

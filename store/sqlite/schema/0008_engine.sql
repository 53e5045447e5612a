-- 0008 Engines: which queues they run the jobs of, and which claims are a dispatcher's.
-- works with programs from: 8
-- Those before hand jobs out again whose runs may have been started. Stop them first.

alter table sluice_queue add column engine text not null default '' check (octet_length(engine) <= 200);
alter table sluice_queue add column run_namespace text not null default '' check (octet_length(run_namespace) <= 200);
alter table sluice_queue add column run_type text not null default '' check (octet_length(run_type) <= 200);
alter table sluice_queue add column run_task_queue text not null default '' check (octet_length(run_task_queue) <= 200);
alter table sluice_queue add column run_timeout_ms integer not null default 0 check (run_timeout_ms between 0 and 315360000000);
alter table sluice_queue add column run_ref text not null default '' check (octet_length(run_ref) <= 200);
alter table sluice_queue add column run_results integer not null default 0 check (run_results in (0, 1));
alter table sluice_queue add column retry_runs integer not null default 0 check (retry_runs in (0, 1));
alter table sluice_queue add column follow_interval_ms integer not null default 2000 check (follow_interval_ms between 100 and 86400000);

-- Where the run of the job is intended or under way. From the intent on it may exist, and only the engine can say
-- whether it does. Runs are listed by the ids of their jobs, which are noted for as long.
alter table sluice_live add column engine text;
alter table sluice_live add column run_of blob;
create index sluice_live_engine on sluice_live (queue, run_of) where engine is not null;

-- Runs that were intended or under way when their jobs were cancelled. They go on until somebody ends them at their engine.
create table sluice_stray_run (
    job_id       blob    not null,
    queue        text    not null,
    engine       text    not null,
    ref          text    not null,
    cancelled_at integer not null,
    primary key (job_id, ref)
) without rowid;
create index sluice_stray_run_turn on sluice_stray_run (queue, cancelled_at, job_id);

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
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, l.engine
from sluice_job j
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq
    and d.generation = (select max(generation) from sluice_done x where x.seq = j.seq);

-- 0008 Engines: which queues they run the jobs of, and which claims are a dispatcher's.
-- locks: queue and live for a moment; live for as long as its new index takes.
-- works with programs from: 8
-- Those before hand jobs out again whose runs may have been started. Stop them first.

alter table sluice.queue
    add column engine             text    not null default '' check (octet_length(engine) <= 200),
    add column run_namespace      text    not null default '' check (octet_length(run_namespace) <= 200),
    add column run_type           text    not null default '' check (octet_length(run_type) <= 200),
    add column run_task_queue     text    not null default '' check (octet_length(run_task_queue) <= 200),
    add column run_timeout_ms     bigint  not null default 0 check (run_timeout_ms between 0 and 315360000000),
    add column run_ref            text    not null default '' check (octet_length(run_ref) <= 200),
    add column run_results        boolean not null default false,
    add column retry_runs         boolean not null default false,
    add column follow_interval_ms bigint  not null default 2000 check (follow_interval_ms between 100 and 86400000);

-- Where the run of the job is intended or under way. From the intent on it may exist, and only the engine can say
-- whether it does.
alter table sluice.live add column engine text;
create index live_engine on sluice.live (queue, id) where engine is not null;

-- Runs that were intended or under way when their jobs were cancelled. They go on until somebody ends them at their engine.
create table sluice.stray_run (
    job_id       uuid        not null,
    queue        text        not null,
    engine       text        not null,
    ref          text        not null,
    cancelled_at timestamptz not null default now(),
    primary key (job_id, ref)
);
create index stray_run_turn on sluice.stray_run (queue, cancelled_at, job_id);

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
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, l.engine
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select * from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true;

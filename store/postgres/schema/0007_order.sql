-- 0007 Order: jobs that run one at a time by an order key, and jobs that run after others.
-- locks: job and live for a moment; live for as long as its new indexes take, which are empty.
-- works with programs from: 3
-- Those of schema 6 and before do not keep the order: use it once every process is newer.

alter table sluice.job
    add column order_key     text,
    add column order_place   bigint, -- in the order of enqueues; a later life has it again
    add column after         uuid[],
    add column after_failure text;

alter table sluice.live
    add column order_key   text,
    add column order_place bigint;

-- The unfinished jobs of an order. Of each, at most one is let go.
create index live_order on sluice.live (queue, order_key, order_place) where order_key is not null;
create unique index live_open on sluice.live (queue, order_key) where order_key is not null and blocked_by is null;

-- Places are taken while the row of the order key is locked, so that they are in the order of enqueues.
create sequence sluice.order_place;
create table sluice.order_key (
    queue     text not null,
    order_key text not null,
    primary key (queue, order_key)
);

-- What unfinished jobs are to run after and still wait for.
create table sluice.job_after (
    after_id uuid not null,
    job_id   uuid not null,
    primary key (after_id, job_id)
);
create index job_after_job on sluice.job_after (job_id);

-- Queues in which jobs have, or had, others waiting for them: the end of a job looks for those there only.
create table sluice.awaited (
    queue text primary key
);

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
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select * from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true;

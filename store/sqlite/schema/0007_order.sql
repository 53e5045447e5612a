-- 0007 Order: jobs that run one at a time by an order key, and jobs that run after others.
-- works with programs from: 3
-- Those of schema 6 and before do not keep the order: use it once every process is newer.

alter table sluice_job add column order_key text;
alter table sluice_job add column after text; -- ids as a JSON array
alter table sluice_job add column after_failure text check (after_failure in ('cancel', 'run', 'wait'));
alter table sluice_live add column order_key text;

-- The unfinished jobs of an order, by arrival. Of each, at most one is let go.
create index sluice_live_order on sluice_live (queue, order_key, seq) where order_key is not null;
create unique index sluice_live_open on sluice_live (queue, order_key) where order_key is not null and blocked_by is null;

-- What unfinished jobs are to run after and still wait for.
create table sluice_after (
    after_seq integer not null,
    seq       integer not null,
    primary key (after_seq, seq)
) without rowid;
create index sluice_after_waiting on sluice_after (seq);

-- Queues in which jobs have, or had, others waiting for them: the end of a job looks for those there only.
create table sluice_awaited (
    queue text primary key
) without rowid;

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
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure
from sluice_job j
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq
    and d.generation = (select max(generation) from sluice_done x where x.seq = j.seq);

-- 0001 The tables of a job's life. Instants are microseconds since 1970 in UTC; ids and tokens are 16 bytes.
-- locks: the whole file, for as long as it takes to make empty tables.
-- works with programs from: 1

-- What a producer said. Written once, never changed, read when a job is claimed or looked at.
create table sluice_job (
    seq          integer primary key, -- the order of arrival
    id           blob    not null unique,
    queue        text    not null,
    tenant       text    not null default '',
    priority     integer not null check (priority between 1 and 10),
    key          text,
    payload      blob    not null,
    labels       text,
    max_attempts integer,
    created_at   integer not null,
    expires_at   integer
);

-- One narrow row per unfinished job. Claims and moves touch this table only; the row is deleted
-- when the job ends.
create table sluice_live (
    seq         integer primary key,
    queue       text    not null,
    tenant      text    not null default '',
    priority    integer not null,
    state       text    not null default 'queued' check (state in ('queued', 'claimed', 'dispatched', 'uncertain')),
    due_at      integer not null,
    expires_at  integer,
    generation  integer not null default 1,
    attempts    integer not null default 0,
    releases    integer not null default 0,
    recoveries  integer not null default 0,
    keyed       integer not null default 0, -- it holds its key while it is unfinished
    blocked_by  integer,                    -- the seq of the job that must end first
    token       blob,                       -- of the present or the last claim
    holder      text,
    claimed_at  integer,
    lease_until integer,
    ref         text,
    error       text,
    checkpoint  blob
);

-- Claims walk this index from the front, one priority after the other.
create index sluice_live_claim on sluice_live (queue, priority, due_at) where state = 'queued' and blocked_by is null;
create index sluice_live_lease on sluice_live (lease_until) where state = 'claimed';
create index sluice_live_away on sluice_live (queue, state) where state in ('dispatched', 'uncertain');
create index sluice_live_expiry on sluice_live (expires_at) where expires_at is not null;
create index sluice_live_blocked on sluice_live (blocked_by) where blocked_by is not null;

-- History: one row per finished life of a job.
create table sluice_done (
    seq         integer not null,
    generation  integer not null,
    queue       text    not null,
    tenant      text    not null default '',
    outcome     text    not null check (outcome in ('completed', 'dead', 'cancelled')),
    due_at      integer not null,
    claimed_at  integer,
    finished_at integer not null,
    attempts    integer not null,
    releases    integer not null,
    recoveries  integer not null,
    token       blob,
    holder      text,
    ref         text,
    result      blob,
    error       text,
    requeued_at integer,
    primary key (seq, generation)
) without rowid;

-- The dead letters that wait for a person.
create index sluice_done_dead on sluice_done (queue, seq) where outcome = 'dead' and requeued_at is null;

-- One row per failed attempt.
create table sluice_attempt (
    seq        integer not null,
    generation integer not null,
    attempt    integer not null,
    claimed_at integer,
    failed_at  integer not null,
    holder     text,
    error      text    not null,
    stack      text,
    primary key (seq, generation, attempt)
) without rowid;

-- Who holds which key; only jobs with a key pay for it. No until: as long as the job is unfinished.
create table sluice_job_key (
    queue  text    not null,
    key    text    not null,
    job_id blob    not null,
    until  integer,
    primary key (queue, key)
) without rowid;
create index sluice_job_key_until on sluice_job_key (until) where until is not null;

-- A queue's settings. Durations are in milliseconds.
create table sluice_queue (
    name                text    primary key,
    version             integer not null default 1,
    changed_at          integer not null,
    changed_by          text    not null default '',
    reason              text    not null default '',
    paused              integer not null default 0 check (paused in (0, 1)),
    lease_ms            integer not null default 60000 check (lease_ms between 100 and 86400000),
    timeout_ms          integer not null default 900000 check (timeout_ms between 0 and 2592000000),
    max_attempts        integer not null default 3 check (max_attempts between 1 and 10000),
    max_recoveries      integer not null default 5 check (max_recoveries between 1 and 10000),
    backoff_base_ms     integer not null default 2000 check (backoff_base_ms between 0 and 2592000000),
    backoff_factor      real    not null default 2 check (backoff_factor between 1 and 100),
    backoff_max_ms      integer not null default 60000 check (backoff_max_ms between backoff_base_ms and 2592000000),
    backoff_jitter_ms   integer not null default 1000 check (backoff_jitter_ms between 0 and 86400000),
    backoff_full_jitter integer not null default 0 check (backoff_full_jitter in (0, 1)),
    recover_interval_ms integer not null default 5000 check (recover_interval_ms between 100 and 86400000),
    recover_batch       integer not null default 1000 check (recover_batch between 1 and 10000),
    keep_completed_ms   integer not null default 604800000 check (keep_completed_ms >= 0),
    keep_cancelled_ms   integer not null default 604800000 check (keep_cancelled_ms >= 0),
    keep_dead_ms        integer not null default 7776000000 check (keep_dead_ms >= 0),
    payload_limit       integer not null default 1048576 check (payload_limit between 1 and 67108864),
    payload_schema      text    not null default '',
    audit               text    not null default 'notable' check (audit in ('notable', 'full'))
) strict;

create table sluice_tier (
    name       text    primary key,
    version    integer not null default 1,
    changed_at integer not null,
    changed_by text    not null default '',
    reason     text    not null default ''
);

create table sluice_tenant (
    name       text    primary key,
    tier       text    not null default '',
    version    integer not null default 1,
    changed_at integer not null,
    changed_by text    not null default '',
    reason     text    not null default ''
);

-- Who did what, when and why. Only ever added to.
create table sluice_audit (
    seq        integer primary key autoincrement,
    at         integer not null,
    actor      text    not null,
    object     text    not null check (object in ('job', 'queue', 'tenant', 'tier')),
    name       text    not null default '',
    event      text    not null,
    job_id     blob,
    generation integer not null default 0,
    from_state text    not null default '',
    to_state   text    not null default '',
    reason     text    not null default '',
    before     text,
    after      text,
    act_id     blob
);
create index sluice_audit_job on sluice_audit (job_id) where job_id is not null;
create index sluice_audit_object on sluice_audit (object, name) where object <> 'job';
create index sluice_audit_act on sluice_audit (act_id) where act_id is not null;

-- The processes that claim jobs or tend them.
create table sluice_holder (
    id      text    primary key,
    role    text    not null,
    queues  text    not null default '[]',
    slots   integer not null default 0,
    busy    integer not null default 0,
    version text    not null default '',
    started integer not null,
    seen    integer not null
);

-- One row per job, whatever its state: the thing to select from.
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
       d.finished_at, d.result, l.checkpoint, j.payload
from sluice_job j
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq
    and d.generation = (select max(generation) from sluice_done x where x.seq = j.seq);

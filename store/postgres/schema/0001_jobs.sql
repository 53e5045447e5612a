-- 0001 The tables of a job's life.
-- locks: none on tables that exist.
-- works with programs from: 1

-- What a producer said. Written once, never changed, read when a job is claimed or looked at.
create table sluice.job (
    id           uuid        primary key,
    queue        text        not null,
    tenant       text        not null default '',
    priority     smallint    not null check (priority between 1 and 10),
    key          text,
    payload      bytea       not null,
    labels       jsonb,
    max_attempts smallint,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz
);

-- One narrow row per unfinished job. Claims and moves touch this table only; the row is deleted
-- when the job ends.
create table sluice.live (
    id          uuid        primary key,
    queue       text        not null,
    tenant      text        not null default '',
    priority    smallint    not null,
    state       text        not null default 'queued' check (state in ('queued', 'claimed', 'dispatched', 'uncertain')),
    due_at      timestamptz not null,
    expires_at  timestamptz,
    generation  integer     not null default 1,
    attempts    integer     not null default 0,
    releases    integer     not null default 0,
    recoveries  integer     not null default 0,
    keyed       boolean     not null default false, -- it holds its key while it is unfinished
    blocked_by  uuid,                               -- the job that must end first
    token       uuid,                               -- of the present or the last claim
    holder      text,
    claimed_at  timestamptz,
    lease_until timestamptz,
    ref         text,
    error       text,
    checkpoint  bytea
);

-- Claims walk this index from the front, one priority after the other.
create index live_claim on sluice.live (queue, priority, due_at, id) where state = 'queued' and blocked_by is null;
create index live_lease on sluice.live (lease_until) where state = 'claimed';
create index live_away on sluice.live (queue, state) where state in ('dispatched', 'uncertain');
create index live_expiry on sluice.live (expires_at) where expires_at is not null;
create index live_blocked on sluice.live (blocked_by) where blocked_by is not null;

-- History: one row per finished life of a job.
create table sluice.done (
    id          uuid        not null,
    generation  integer     not null,
    queue       text        not null,
    tenant      text        not null default '',
    outcome     text        not null check (outcome in ('completed', 'dead', 'cancelled')),
    due_at      timestamptz not null,
    claimed_at  timestamptz,
    finished_at timestamptz not null default now(),
    attempts    integer     not null,
    releases    integer     not null,
    recoveries  integer     not null,
    token       uuid,
    holder      text,
    ref         text,
    result      bytea,
    error       text,
    requeued_at timestamptz,
    primary key (id, generation)
);

-- The dead letters that wait for a person.
create index done_dead on sluice.done (queue, id) where outcome = 'dead' and requeued_at is null;

-- One row per failed attempt.
create table sluice.attempt (
    job_id     uuid        not null,
    generation integer     not null,
    attempt    integer     not null,
    claimed_at timestamptz,
    failed_at  timestamptz not null default now(),
    holder     text,
    error      text        not null,
    stack      text,
    primary key (job_id, generation, attempt)
);

-- Who holds which key; only jobs with a key pay for it. No until: as long as the job is unfinished.
create table sluice.job_key (
    queue  text not null,
    key    text not null,
    job_id uuid not null,
    until  timestamptz,
    primary key (queue, key)
);
create index job_key_until on sluice.job_key (until) where until is not null;

-- A queue's settings. Durations are in milliseconds.
create table sluice.queue (
    name                text             primary key check (name ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'),
    version             bigint           not null default 1,
    changed_at          timestamptz      not null default now(),
    changed_by          text             not null default '',
    reason              text             not null default '',
    paused              boolean          not null default false,
    lease_ms            bigint           not null default 60000 check (lease_ms between 100 and 86400000),
    timeout_ms          bigint           not null default 900000 check (timeout_ms between 0 and 2592000000),
    max_attempts        bigint           not null default 3 check (max_attempts between 1 and 10000),
    max_recoveries      bigint           not null default 5 check (max_recoveries between 1 and 10000),
    backoff_base_ms     bigint           not null default 2000 check (backoff_base_ms between 0 and 2592000000),
    backoff_factor      double precision not null default 2 check (backoff_factor between 1 and 100),
    backoff_max_ms      bigint           not null default 60000 check (backoff_max_ms between backoff_base_ms and 2592000000),
    backoff_jitter_ms   bigint           not null default 1000 check (backoff_jitter_ms between 0 and 86400000),
    backoff_full_jitter boolean          not null default false,
    recover_interval_ms bigint           not null default 5000 check (recover_interval_ms between 100 and 86400000),
    recover_batch       bigint           not null default 1000 check (recover_batch between 1 and 10000),
    keep_completed_ms   bigint           not null default 604800000 check (keep_completed_ms >= 0),
    keep_cancelled_ms   bigint           not null default 604800000 check (keep_cancelled_ms >= 0),
    keep_dead_ms        bigint           not null default 7776000000 check (keep_dead_ms >= 0),
    payload_limit       bigint           not null default 1048576 check (payload_limit between 1 and 67108864),
    payload_schema      text             not null default '',
    audit               text             not null default 'notable' check (audit in ('notable', 'full'))
);

create table sluice.tier (
    name       text        primary key,
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
);

create table sluice.tenant (
    name       text        primary key,
    tier       text        not null default '',
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
);

-- Who did what, when and why. Only ever added to.
create table sluice.audit (
    seq        bigint      generated always as identity primary key,
    at         timestamptz not null default now(),
    actor      text        not null,
    object     text        not null check (object in ('job', 'queue', 'tenant', 'tier')),
    name       text        not null default '',
    event      text        not null,
    job_id     uuid,
    generation integer     not null default 0,
    from_state text        not null default '',
    to_state   text        not null default '',
    reason     text        not null default '',
    before     jsonb,
    after      jsonb,
    act_id     uuid
);
create index audit_job on sluice.audit (job_id, seq) where job_id is not null;
create index audit_object on sluice.audit (object, name, seq) where object <> 'job';
create index audit_act on sluice.audit (act_id) where act_id is not null;

-- The processes that claim jobs or tend them.
create table sluice.holder (
    id      text        primary key,
    role    text        not null,
    queues  text[]      not null default '{}',
    slots   integer     not null default 0,
    busy    integer     not null default 0,
    version text        not null default '',
    started timestamptz not null default now(),
    seen    timestamptz not null default now()
);

-- One row per job, whatever its state: the thing to select from.
create view sluice.jobs as
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
       d.finished_at, d.result, l.checkpoint, j.payload
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select * from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true;

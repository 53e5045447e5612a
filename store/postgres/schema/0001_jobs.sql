-- 0001 The whole schema, in the order of a job's life: settings, jobs, flow control, engines, processes, audit,
-- statistics, operations, schedules, tokens, alerts, followers; then functions, triggers and views.
-- locks: none on tables that exist.
-- works with programs from: 1
-- Columns that end in _ms hold ms, in _us µs. Ids and tokens are UUIDs.

-- Settings and limits. People set them. Processes read settings at most 1 s after a change.

create table sluice.queue (
    name                text             primary key check (name ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' or name ~ '^([A-Za-z0-9][A-Za-z0-9._:-]{0,61}[.])?[*]$'),
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
    audit               text             not null default 'notable' check (audit in ('notable', 'full')),
    rate                double precision not null default 0 check (rate between 0 and 1000000),
    burst               bigint           not null default 0 check (burst between 0 and 1000000),
    concurrency         bigint           not null default 0 check (concurrency between 0 and 1000000),
    paused_until        timestamptz,
    ageing              double precision not null default 0.05 check (ageing between 0 and 1),
    fair                boolean          not null default false,
    tenant_concurrency  bigint           not null default 0 check (tenant_concurrency between 0 and 1000000),
    tenant_rate         double precision not null default 0 check (tenant_rate between 0 and 1000000),
    tenant_burst        bigint           not null default 0 check (tenant_burst between 0 and 1000000),
    recorded            jsonb,
    scheduled           jsonb,
    batch               bigint           not null default 0 check (batch between 0 and 10000),
    interval_ms         bigint           not null default 0 check (interval_ms between 0 and 86400000),
    claim_ahead_ms      bigint           not null default 0 check (claim_ahead_ms between 0 and 86400000),
    jitter_ms           bigint           not null default 0 check (jitter_ms between 0 and 86400000),
    engine              text             not null default '' check (octet_length(engine) <= 200),
    run_namespace       text             not null default '' check (octet_length(run_namespace) <= 200),
    run_type            text             not null default '' check (octet_length(run_type) <= 200),
    run_task_queue      text             not null default '' check (octet_length(run_task_queue) <= 200),
    run_timeout_ms      bigint           not null default 0 check (run_timeout_ms between 0 and 315360000000),
    run_ref             text             not null default '' check (octet_length(run_ref) <= 200),
    run_results         boolean          not null default false,
    retry_runs          boolean          not null default false,
    follow_interval_ms  bigint           not null default 2000 check (follow_interval_ms between 100 and 86400000),
    max_waiting         bigint           not null default 0 check (max_waiting between 0 and 1000000),
    tenant_max_waiting  bigint           not null default 0 check (tenant_max_waiting between 0 and 1000000),
    shed                boolean          not null default false,
    limits              text             not null default '' check (octet_length(limits) <= 200),
    keep_results_ms     bigint           not null default 0 check (keep_results_ms >= 0),
    rate_per_ms         bigint           not null default 1000 check (rate_per_ms between 1 and 315360000000),
    tenant_rate_per_ms  bigint           not null default 1000 check (tenant_rate_per_ms between 1 and 315360000000)
);
comment on table sluice.queue is 'The settings of each queue. A queue without a row has the defaults.';
comment on column sluice.queue.name is 'the name of the queue';
comment on column sluice.queue.version is 'counts the changes of the row, from 1';
comment on column sluice.queue.changed_at is 'when the last change was stored';
comment on column sluice.queue.changed_by is 'the person or program that made the last change';
comment on column sluice.queue.reason is 'why the last change was made';
comment on column sluice.queue.paused is 'nobody claims jobs of the queue while it is true';
comment on column sluice.queue.lease_ms is 'ms that a claim lasts unless its holder renews it';
comment on column sluice.queue.timeout_ms is 'ms that an attempt may run; 0: no limit';
comment on column sluice.queue.max_attempts is 'the failed attempt that buries a job';
comment on column sluice.queue.max_recoveries is 'the lost holder that buries a job as poison';
comment on column sluice.queue.backoff_base_ms is 'ms of wait after the first failed attempt';
comment on column sluice.queue.backoff_factor is 'multiplies the wait with each further failed attempt';
comment on column sluice.queue.backoff_max_ms is 'ms of the longest wait, before jitter';
comment on column sluice.queue.backoff_jitter_ms is 'ms that chance adds to the wait, from 0 up to this';
comment on column sluice.queue.backoff_full_jitter is 'chance draws the whole wait, and adds no jitter';
comment on column sluice.queue.recover_interval_ms is 'ms between two looks of upkeep for expired leases';
comment on column sluice.queue.recover_batch is 'jobs that upkeep recovers at most in one look';
comment on column sluice.queue.keep_completed_ms is 'ms that upkeep keeps completed jobs; 0: for ever';
comment on column sluice.queue.keep_cancelled_ms is 'ms that upkeep keeps cancelled jobs; 0: for ever';
comment on column sluice.queue.keep_dead_ms is 'ms that upkeep keeps dead letters; 0: for ever';
comment on column sluice.queue.payload_limit is 'bytes of the largest payload';
comment on column sluice.queue.payload_schema is 'JSON Schema that payloads must match; empty: none';
comment on column sluice.queue.audit is 'moves that the audit records: notable ones, or every one (full)';
comment on column sluice.queue.rate is 'jobs per second that may start in a window, of all processes; 0: no limit';
comment on column sluice.queue.burst is 'jobs beyond the rate that may start in one window';
comment on column sluice.queue.concurrency is 'jobs that may be claimed or dispatched at the same time; 0: no limit';
comment on column sluice.queue.paused_until is 'when a paused queue opens by itself; null: when a person resumes it';
comment on column sluice.queue.ageing is 'share of claims, 0 to 1, that begin with another priority than 1';
comment on column sluice.queue.fair is 'tenants take turns by their weights';
comment on column sluice.queue.tenant_concurrency is 'one tenant''s jobs that may be claimed or dispatched at the same time; 0: no limit';
comment on column sluice.queue.tenant_rate is 'one tenant''s jobs per second that may be claimed in a window; 0: no limit';
comment on column sluice.queue.tenant_burst is 'one tenant''s jobs beyond its rate that may be claimed in one window';
comment on column sluice.queue.recorded is 'the settings by name as the audit last recorded them; null: never';
comment on column sluice.queue.scheduled is 'scheduled changes of the settings; null: none';
comment on column sluice.queue.batch is 'jobs that one claim takes at most; 0: as many as the process has room for';
comment on column sluice.queue.interval_ms is 'ms between two claims of one process at the least';
comment on column sluice.queue.claim_ahead_ms is 'ms before its due time that an idle process may claim a job';
comment on column sluice.queue.jitter_ms is 'ms that chance adds to the start of a claimed job, from 0 up to this';
comment on column sluice.queue.engine is 'the engine that runs the jobs, by the name that dispatchers use; empty: workers run them';
comment on column sluice.queue.run_namespace is 'the engine''s namespace; empty: the dispatcher''s';
comment on column sluice.queue.run_type is 'the kind of run, such as a workflow type; empty: the queue''s name';
comment on column sluice.queue.run_task_queue is 'the engine''s task queue; empty: the queue''s name';
comment on column sluice.queue.run_timeout_ms is 'ms that a run may take; 0: no limit';
comment on column sluice.queue.run_ref is 'the pattern of names of runs; empty: the default pattern';
comment on column sluice.queue.run_results is 'upkeep keeps the results of runs';
comment on column sluice.queue.retry_runs is 'a failed run is a failed attempt; false: it buries the job';
comment on column sluice.queue.follow_interval_ms is 'ms between two questions of upkeep which runs have ended';
comment on column sluice.queue.max_waiting is 'jobs that may wait before enqueues are refused; 0: no limit';
comment on column sluice.queue.tenant_max_waiting is 'one tenant''s jobs that may wait before its enqueues are refused; 0: no limit';
comment on column sluice.queue.shed is 'a full queue cancels waiting jobs of lower priority instead of refusing an enqueue';
comment on column sluice.queue.limits is 'names of the limits that the queue shares, with commas between; empty: none';
comment on column sluice.queue.keep_results_ms is 'ms that upkeep keeps results of ended jobs; 0: as long as the jobs';
comment on column sluice.queue.rate_per_ms is 'ms of the window of rate';
comment on column sluice.queue.tenant_rate_per_ms is 'ms of the window of tenant_rate';
-- Claims find the queues that share a limit by it.
create index queue_limits on sluice.queue (name) where limits <> '';

create table sluice.named_limit (
    name         text             primary key,
    concurrency  bigint           not null default 0 check (concurrency between 0 and 1000000),
    rate         double precision not null default 0 check (rate between 0 and 1000000),
    burst        bigint           not null default 0 check (burst between 0 and 1000000),
    closed       boolean          not null default false,
    closed_until timestamptz,
    version      bigint           not null default 1,
    changed_at   timestamptz      not null default now(),
    changed_by   text             not null default '',
    reason       text             not null default '',
    rate_per_ms  bigint           not null default 1000 check (rate_per_ms between 1 and 315360000000),
    per_key      boolean          not null default false,
    by_cost      boolean          not null default false
);
comment on table sluice.named_limit is 'Limits that several queues share. The setting limits of a queue names them. Table flow has a row for each, with @ before the name.';
comment on column sluice.named_limit.name is 'the name of the limit';
comment on column sluice.named_limit.concurrency is 'jobs of all its queues that may be claimed or dispatched at the same time; 0: no limit';
comment on column sluice.named_limit.rate is 'jobs of all its queues per second that may start in a window; 0: no limit';
comment on column sluice.named_limit.burst is 'jobs beyond the rate that may start in one window';
comment on column sluice.named_limit.closed is 'nobody claims jobs of its queues while it is true';
comment on column sluice.named_limit.closed_until is 'when a closed limit opens by itself; null: when a person opens it';
comment on column sluice.named_limit.version is 'counts the changes of the row, from 1';
comment on column sluice.named_limit.changed_at is 'when the last change was stored';
comment on column sluice.named_limit.changed_by is 'the person or program that made the last change';
comment on column sluice.named_limit.reason is 'why the last change was made';
comment on column sluice.named_limit.rate_per_ms is 'ms of the window of rate';
comment on column sluice.named_limit.per_key is 'the figures count for each limit key of jobs apart';
comment on column sluice.named_limit.by_cost is 'the figures count the costs of jobs; false: jobs';

create table sluice.tenant (
    name       text        primary key,
    tier       text        not null default '',
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
);
comment on table sluice.tenant is 'The tenants that people have stored. Jobs may name others.';
comment on column sluice.tenant.name is 'the name of the tenant';
comment on column sluice.tenant.tier is 'the tier of the tenant; empty: none';
comment on column sluice.tenant.version is 'counts the changes of the row, from 1';
comment on column sluice.tenant.changed_at is 'when the last change was stored';
comment on column sluice.tenant.changed_by is 'the person or program that made the last change';
comment on column sluice.tenant.reason is 'why the last change was made';

create table sluice.tier (
    name       text        primary key,
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
);
comment on table sluice.tier is 'The tiers of tenants, which share limits.';
comment on column sluice.tier.name is 'the name of the tier';
comment on column sluice.tier.version is 'counts the changes of the row, from 1';
comment on column sluice.tier.changed_at is 'when the last change was stored';
comment on column sluice.tier.changed_by is 'the person or program that made the last change';
comment on column sluice.tier.reason is 'why the last change was made';

create table sluice.tenant_limit (
    queue        text             not null default '',
    tier         text             not null default '',
    tenant       text             not null default '',
    concurrency  bigint           check (concurrency between 0 and 1000000),
    rate         double precision check (rate between 0 and 1000000),
    burst        bigint           check (burst between 0 and 1000000),
    weight       bigint           check (weight between 1 and 1000),
    until        timestamptz,
    paused       boolean          not null default false,
    paused_until timestamptz,
    version      bigint           not null default 1,
    changed_at   timestamptz      not null default now(),
    changed_by   text             not null default '',
    reason       text             not null default '',
    given        boolean          not null generated always as
        (concurrency is not null or rate is not null or burst is not null or weight is not null or paused) stored,
    rate_per_ms  bigint           default 1000 check (rate_per_ms between 1 and 315360000000),
    primary key (queue, tier, tenant),
    check ((tier = '') <> (tenant = ''))
);
comment on table sluice.tenant_limit is 'The limits of a tier or a tenant, in one queue or in all. Null says nothing: the nearest row that says something counts.';
comment on column sluice.tenant_limit.queue is 'the queue; empty: every queue';
comment on column sluice.tenant_limit.tier is 'the tier; empty: the row is about a tenant';
comment on column sluice.tenant_limit.tenant is 'the tenant; empty: the row is about a tier';
comment on column sluice.tenant_limit.concurrency is 'jobs of a tenant that may be claimed or dispatched at the same time; 0: no limit';
comment on column sluice.tenant_limit.rate is 'jobs of a tenant per second that may be claimed in a window; 0: no limit';
comment on column sluice.tenant_limit.burst is 'jobs of a tenant beyond the rate that may be claimed in one window';
comment on column sluice.tenant_limit.weight is 'share of a tenant beside the others, 1 to 1,000';
comment on column sluice.tenant_limit.until is 'when the limits stop counting; null: never';
comment on column sluice.tenant_limit.paused is 'nobody claims jobs of the tenant while it is true';
comment on column sluice.tenant_limit.paused_until is 'when a paused tenant opens by itself; null: when a person resumes it';
comment on column sluice.tenant_limit.version is 'counts the changes of the row, from 1';
comment on column sluice.tenant_limit.changed_at is 'when the last change was stored';
comment on column sluice.tenant_limit.changed_by is 'the person or program that made the last change';
comment on column sluice.tenant_limit.reason is 'why the last change was made';
comment on column sluice.tenant_limit.given is 'the row says something, so that its queue serves tenants apart';
comment on column sluice.tenant_limit.rate_per_ms is 'ms of the window of rate';
create index tenant_limit_given on sluice.tenant_limit (queue) where given;
create index tenant_limit_end on sluice.tenant_limit (queue) where until is not null or paused_until is not null;
create index tenant_limit_tier on sluice.tenant_limit (tier, queue) where tier <> '';
create index tenant_limit_tenant on sluice.tenant_limit (tenant, queue) where tenant <> '';

create table sluice.queue_policy (
    id         bigint      primary key default 1 check (id = 1),
    max_queues bigint      not null default 10000 check (max_queues between 1 and 1000000),
    declared   boolean     not null default false,
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
);
comment on table sluice.queue_policy is 'The rule for new queues. It has one row, or none: then the defaults count.';
comment on column sluice.queue_policy.id is 'always 1';
comment on column sluice.queue_policy.max_queues is 'queues that the store takes at most';
comment on column sluice.queue_policy.declared is 'a person must declare a queue; a job makes none';
comment on column sluice.queue_policy.version is 'counts the changes of the row, from 1';
comment on column sluice.queue_policy.changed_at is 'when the last change was stored';
comment on column sluice.queue_policy.changed_by is 'the person or program that made the last change';
comment on column sluice.queue_policy.reason is 'why the last change was made';

-- Jobs. From enqueue to history, with keys and order.

create table sluice.job (
    id            uuid        primary key,
    queue         text        not null,
    tenant        text        not null default '',
    priority      smallint    not null check (priority between 1 and 10),
    key           text,
    payload       bytea       not null,
    labels        jsonb,
    max_attempts  smallint,
    created_at    timestamptz not null default now(),
    expires_at    timestamptz,
    order_key     text,
    order_place   bigint,
    after         uuid[],
    after_failure text,
    timeout_ms    bigint,
    batch_id      uuid,
    limit_key     text,
    cost          integer
);
comment on table sluice.job is 'The producer''s data. Sluice writes a row once; edits and coalesced duplicates change it.';
comment on column sluice.job.id is 'the id of the job, a UUID';
comment on column sluice.job.queue is 'the queue of the job';
comment on column sluice.job.tenant is 'the tenant of the job; empty: none';
comment on column sluice.job.priority is '1 to 10; claims take 1 first';
comment on column sluice.job.key is 'the key that keeps twins out; null: none';
comment on column sluice.job.payload is 'the data of the job, as JSON text';
comment on column sluice.job.labels is 'names and values for searches; null: none';
comment on column sluice.job.max_attempts is 'the failed attempt that buries the job; null: the queue''s setting';
comment on column sluice.job.created_at is 'when the producer enqueued the job';
comment on column sluice.job.expires_at is 'when Sluice cancels the job if it waits then in its first life; null: never';
comment on column sluice.job.order_key is 'jobs with the same order key run one at a time; null: none';
comment on column sluice.job.order_place is 'the place in the order of enqueues, from sluice.order_place; null: no order key';
comment on column sluice.job.after is 'ids of the jobs that must end before this one; null: none';
comment on column sluice.job.after_failure is 'the fate of the job if one in after fails: cancel, run or wait, and behind it the exceptions, each a blank and ID=RULE; null: after is empty';
comment on column sluice.job.timeout_ms is 'how long an attempt or a run of the job may take, in ms; null: as the handler or the queue says';
comment on column sluice.job.batch_id is 'the id of the batch that the job is in; null: none';
comment on column sluice.job.limit_key is 'the value, such as a host, by which limits that are per key bound the job; null: none';
comment on column sluice.job.cost is 'the units that the job takes of limits by cost; null: 1';
-- Searches by key, tenant or batch go along these indexes.
create index job_by_key on sluice.job (key, id) where key is not null;
create index job_by_tenant on sluice.job (tenant, id) where tenant <> '';
create index job_by_batch on sluice.job (batch_id, id) where batch_id is not null;

create table sluice.live (
    id            uuid        primary key,
    queue         text        not null,
    tenant        text        not null default '',
    priority      smallint    not null,
    state         text        not null default 'queued' check (state in ('queued', 'claimed', 'dispatched', 'uncertain')),
    due_at        timestamptz not null,
    expires_at    timestamptz,
    generation    integer     not null default 1,
    attempts      integer     not null default 0,
    releases      integer     not null default 0,
    recoveries    integer     not null default 0,
    keyed         boolean     not null default false,
    blocked_by    uuid,
    token         uuid,
    holder        text,
    claimed_at    timestamptz,
    lease_until   timestamptz,
    ref           text,
    error         text,
    checkpoint    bytea,
    in_tenant_queue       boolean     not null default false,
    order_key     text,
    order_place   bigint,
    engine        text,
    dispatched_at timestamptz,
    batch_id      uuid,
    limit_key     text,
    parked        boolean     not null default false,
    cost          integer     not null default 1
);
comment on table sluice.live is 'Unfinished jobs. Claims and moves write this narrow table only. Sluice deletes the row when the job ends.';
comment on column sluice.live.id is 'the id of the job';
comment on column sluice.live.queue is 'the queue of the job';
comment on column sluice.live.tenant is 'the tenant of the job; empty: none';
comment on column sluice.live.priority is '1 to 10; claims take 1 first';
comment on column sluice.live.state is 'queued, claimed, dispatched or uncertain';
comment on column sluice.live.due_at is 'when the job may be claimed';
comment on column sluice.live.expires_at is 'when Sluice cancels the job if it waits then; null: never';
comment on column sluice.live.generation is 'the number of the job''s life, from 1; a requeue begins the next';
comment on column sluice.live.attempts is 'failed attempts in this life';
comment on column sluice.live.releases is 'claims in this life that holders handed back uncounted';
comment on column sluice.live.recoveries is 'claims in this life whose holders were lost';
comment on column sluice.live.keyed is 'the job holds its key until it ends';
comment on column sluice.live.blocked_by is 'the id of the job that must end first; null: none';
comment on column sluice.live.token is 'proves the present or the last claim; null: nobody has claimed the job';
comment on column sluice.live.holder is 'the id of the process that claimed the job last';
comment on column sluice.live.claimed_at is 'when the holder claimed the job last';
comment on column sluice.live.lease_until is 'when the present lease ends unless the holder renews it';
comment on column sluice.live.ref is 'the name of the engine''s run; null: none is intended or open';
comment on column sluice.live.error is 'the text of the last failure; null: none';
comment on column sluice.live.checkpoint is 'progress that the handler saved, as JSON text; null: none';
comment on column sluice.live.in_tenant_queue is 'the job waits in its tenant''s queue (table tenant queue)';
comment on column sluice.live.order_key is 'the job''s order key; null: none';
comment on column sluice.live.order_place is 'the job''s place in the order of enqueues';
comment on column sluice.live.engine is 'the place of the run that is intended or open, by engine; null: none';
comment on column sluice.live.dispatched_at is 'when the engine took the run; null: it has not';
comment on column sluice.live.batch_id is 'the id of the batch that the job is in; null: none';
comment on column sluice.live.limit_key is 'the value by which limits that are per key bound the job; null: none';
comment on column sluice.live.cost is 'the units that the job takes of limits by cost';
comment on column sluice.live.parked is 'the job waits for itself until a limit lets its limit key in (table limit_lane)';
create index live_expiry on sluice.live (expires_at) where expires_at is not null;
create index live_blocked on sluice.live (blocked_by) where blocked_by is not null;
-- Claims count jobs in flight in the order of claims: entries that an old transaction keeps lie before
-- flow.counted_from. Upkeep finds leases by it.
create index live_claimed on sluice.live (queue, claimed_at) where state = 'claimed';
create index live_away on sluice.live (queue, state, claimed_at) where state in ('dispatched', 'uncertain');
-- Claims walk this index from the front, one priority after the other.
create index live_claim on sluice.live (queue, priority, due_at, id)
    where state = 'queued' and blocked_by is null and not in_tenant_queue;
-- Claims of a tenant queue walk this index.
create index live_tenant_queue on sluice.live (queue, tenant, priority, due_at, id)
    where state = 'queued' and blocked_by is null and in_tenant_queue;
-- The first due time of jobs in tenant queues.
create index live_tenant_queue_due on sluice.live (queue, due_at) where state = 'queued' and blocked_by is null and in_tenant_queue;
-- Claims count a tenant's jobs in flight by it.
create index live_held on sluice.live (queue, tenant, claimed_at)
    where state in ('claimed', 'dispatched') and tenant <> '';
-- The unfinished jobs of an order. Of each order key, at most one job is let go (live_open): it is not blocked, or by its limit key only.
create index live_order on sluice.live (queue, order_key, order_place) where order_key is not null;
create unique index live_open on sluice.live (queue, order_key) where order_key is not null and (blocked_by is null or parked);
create index live_engine on sluice.live (queue, id) where engine is not null;
-- Claims count the jobs in flight of a limit key by the first, and let in parked jobs along the second.
create index live_limit_key on sluice.live (limit_key, claimed_at) where limit_key is not null and state in ('claimed', 'dispatched');
create index live_parked on sluice.live (queue, limit_key, priority, due_at, id) where parked;

create table sluice.done (
    id            uuid        not null,
    generation    integer     not null,
    queue         text        not null,
    tenant        text        not null default '',
    outcome       text        not null check (outcome in ('completed', 'dead', 'cancelled')),
    due_at        timestamptz not null,
    claimed_at    timestamptz,
    finished_at   timestamptz not null default now(),
    attempts      integer     not null,
    releases      integer     not null,
    recoveries    integer     not null,
    token         uuid,
    holder        text,
    ref           text,
    result        bytea,
    error         text,
    requeued_at   timestamptz,
    dispatched_at timestamptz,
    primary key (id, generation)
);
comment on table sluice.done is 'History: one row for each finished life of a job.';
comment on column sluice.done.id is 'the id of the job';
comment on column sluice.done.generation is 'the number of the job''s life, from 1';
comment on column sluice.done.queue is 'the queue of the job';
comment on column sluice.done.tenant is 'the tenant of the job; empty: none';
comment on column sluice.done.outcome is 'completed, dead or cancelled';
comment on column sluice.done.due_at is 'when the job was due last';
comment on column sluice.done.claimed_at is 'when the last holder claimed the job; null: nobody did';
comment on column sluice.done.finished_at is 'when the life ended';
comment on column sluice.done.attempts is 'failed attempts in the life';
comment on column sluice.done.releases is 'claims in the life that holders handed back uncounted';
comment on column sluice.done.recoveries is 'claims in the life whose holders were lost';
comment on column sluice.done.token is 'the token of the last claim; null: nobody claimed the job';
comment on column sluice.done.holder is 'the id of the process that claimed the job last; null: nobody did';
comment on column sluice.done.ref is 'the name of the engine''s run; null: there was none';
comment on column sluice.done.result is 'the result, as JSON text; null: none; empty: upkeep removed it after keep_results_ms';
comment on column sluice.done.error is 'the text of the last failure; null: none';
comment on column sluice.done.requeued_at is 'when a person requeued the job into its next life; null: nobody did';
comment on column sluice.done.dispatched_at is 'when the engine took the run; null: it did not';
-- The dead letters that wait for a person.
create index done_dead on sluice.done (queue, id) where outcome = 'dead' and requeued_at is null;
-- Upkeep prunes history along it, and reads only rows that it deletes.
create index done_ended on sluice.done (queue, outcome, finished_at) where requeued_at is null;

create table sluice.result_cursor (
    queue   text        not null,
    outcome text        not null,
    upto    timestamptz not null,
    primary key (queue, outcome)
) with (fillfactor = 50);
comment on table sluice.result_cursor is 'How far upkeep has removed results of ended jobs from the history. Upkeep alone writes it.';
comment on column sluice.result_cursor.queue is 'the queue of the jobs';
comment on column sluice.result_cursor.outcome is 'how the jobs ended: completed, dead or cancelled';
comment on column sluice.result_cursor.upto is 'the results of all jobs that ended before are removed; a job whose transaction was open for longer than keep_results_ms keeps its result';

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
comment on table sluice.attempt is 'Failed attempts, one row each.';
comment on column sluice.attempt.job_id is 'the id of the job';
comment on column sluice.attempt.generation is 'the number of the job''s life, from 1';
comment on column sluice.attempt.attempt is 'the number of the attempt within the life, from 1';
comment on column sluice.attempt.claimed_at is 'when the holder claimed the job';
comment on column sluice.attempt.failed_at is 'when the attempt failed';
comment on column sluice.attempt.holder is 'the id of the process that ran the attempt';
comment on column sluice.attempt.error is 'the text of the failure';
comment on column sluice.attempt.stack is 'the stack of a panic; null: none';

create table sluice.job_key (
    queue  text        not null,
    key    text        not null,
    job_id uuid        not null,
    until  timestamptz,
    primary key (queue, key)
);
comment on table sluice.job_key is 'Keys of jobs and the jobs that hold them. Only jobs with a key have a row.';
comment on column sluice.job_key.queue is 'the queue in which the key counts';
comment on column sluice.job_key.key is 'the key';
comment on column sluice.job_key.job_id is 'the id of the job that holds the key';
comment on column sluice.job_key.until is 'when the key becomes free; null: when the job ends';
create index job_key_until on sluice.job_key (until) where until is not null;

create table sluice.order_key (
    queue     text not null,
    order_key text not null,
    primary key (queue, order_key)
);
comment on table sluice.order_key is 'Order keys. An enqueue locks the row while it takes places in the order.';
comment on column sluice.order_key.queue is 'the queue of the order';
comment on column sluice.order_key.order_key is 'the order key';
-- An enqueue takes places while it locks the row of the order key. So places are in the order of enqueues.
create sequence sluice.order_place;

create table sluice.job_after (
    after_id uuid not null,
    job_id   uuid not null,
    rule     text not null,
    primary key (after_id, job_id)
);
comment on table sluice.job_after is 'Jobs that others wait for, or have waited for. A row goes with the first of its jobs that is deleted.';
comment on column sluice.job_after.after_id is 'the id of the job that must end first';
comment on column sluice.job_after.job_id is 'the id of the job that waits';
comment on column sluice.job_after.rule is 'the fate of the job that waits if the other fails: cancel, run or wait';
create index job_after_job on sluice.job_after (job_id, after_id);

create table sluice.awaited (
    queue text primary key
);
comment on table sluice.awaited is 'Queues whose jobs have, or had, jobs that wait for them. The end of a job looks for waiting jobs in these queues only.';
comment on column sluice.awaited.queue is 'the name of the queue';

-- Flow control. Rates, turns of tenants and jobs in flight. Claims write these tables.

create table sluice.flow (
    queue          text             primary key,
    tokens         double precision not null default 0,
    filled_at      timestamptz,
    claimed_at     timestamptz,
    counted_from   timestamptz,
    version        bigint           not null default 0,
    counted_since  timestamptz,
    virtual_start           double precision not null default 0,
    tenant         text             not null default '',
    wakes_from     timestamptz,
    fair_since    timestamptz,
    permits_from   timestamptz,
    clock_ahead_us bigint           not null default 0
) with (fillfactor = 20);
comment on table sluice.flow is 'The flow of each queue with limits, and of each named limit. A claim locks the row, so that claims of one queue follow each other.';
comment on column sluice.flow.queue is 'the name of the queue; of a limit, @ and its name';
comment on column sluice.flow.tokens is 'tokens in the bucket of the rate, in jobs';
comment on column sluice.flow.filled_at is 'when a claim last filled the bucket; null: never';
comment on column sluice.flow.claimed_at is 'when the last claim was made; always later than the claim before, whatever the clock does';
comment on column sluice.flow.counted_from is 'no job in flight was claimed before this instant; null: unknown';
comment on column sluice.flow.version is 'the version of the queue''s settings at the last claim';
comment on column sluice.flow.counted_since is 'when a claim first saw this version';
comment on column sluice.flow.virtual_start is 'the virtual start before which no tenant queue is active';
comment on column sluice.flow.tenant is 'the tenant before which, at that virtual start, no tenant queue is active';
comment on column sluice.flow.wakes_from is 'no tenant queue sleeps until an instant before this one; null: unknown';
comment on column sluice.flow.fair_since is 'since when the queue serves its tenants apart; null: it does not';
comment on column sluice.flow.permits_from is 'no permit belongs to a claim before this instant; null: unknown';
comment on column sluice.flow.clock_ahead_us is 'µs by which processes found the server''s clock set forward';

create table sluice.tenant_queue (
    queue        text             not null,
    tenant       text             not null,
    version      bigint           not null,
    virtual_start         double precision not null,
    jobs         integer          not null,
    active       boolean          not null,
    at_limit     boolean          not null default false,
    wake_at      timestamptz,
    tokens       double precision not null default 0,
    filled_at    timestamptz,
    counted_from timestamptz
);
comment on table sluice.tenant_queue is 'Tenant queues. Claims alone write them, under the lock of the flow. Of a tenant, the row with the highest version counts.';
comment on column sluice.tenant_queue.queue is 'the name of the queue';
comment on column sluice.tenant_queue.tenant is 'the tenant';
comment on column sluice.tenant_queue.version is 'counts the versions of the row';
comment on column sluice.tenant_queue.virtual_start is 'the position in the order of service, in jobs by weight';
comment on column sluice.tenant_queue.jobs is 'bits 1 to 10: the priorities of which jobs may wait';
comment on column sluice.tenant_queue.active is 'jobs may be claimable; false: the tenant queue sleeps';
comment on column sluice.tenant_queue.at_limit is 'it sleeps until a job of the tenant ends';
comment on column sluice.tenant_queue.wake_at is 'when it wakes; null: no instant is set';
comment on column sluice.tenant_queue.tokens is 'tokens in the bucket of the tenant''s rate, in jobs';
comment on column sluice.tenant_queue.filled_at is 'when a claim last filled the bucket; null: never';
comment on column sluice.tenant_queue.counted_from is 'no job in flight of the tenant was claimed before this instant; null: unknown';
-- It is not unique: a unique index would be walked through every version of a row that an old transaction keeps.
create index tenant_queue_tenant on sluice.tenant_queue (queue, tenant, version desc);
-- Claims serve active tenant queues in this order. Collation "C" compares names as Go does.
create index tenant_queue_virtual_start on sluice.tenant_queue (queue, virtual_start, tenant collate "C") where active;
create index tenant_queue_wake on sluice.tenant_queue (queue, wake_at) where not active and wake_at is not null;

create table sluice.tenant_change (
    queue  text        not null,
    at     timestamptz not null default clock_timestamp(),
    tenant text        not null,
    jobs   integer     not null,
    due_at timestamptz,
    room   boolean     not null default false,
    terms  boolean     not null default false
);
comment on table sluice.tenant_change is 'News for tenant queues: new jobs, room, and changed limits. Anybody adds rows and waits for nobody; claims delete them.';
comment on column sluice.tenant_change.queue is 'the name of the queue';
comment on column sluice.tenant_change.at is 'when the row was added';
comment on column sluice.tenant_change.tenant is 'the tenant';
comment on column sluice.tenant_change.jobs is 'bits 1 to 10: the priorities of new jobs';
comment on column sluice.tenant_change.due_at is 'when the first of the new jobs is due; null: no new jobs';
comment on column sluice.tenant_change.room is 'a job of the tenant left flight';
comment on column sluice.tenant_change.terms is 'the tenant''s limits have changed';
create index tenant_change_at on sluice.tenant_change (queue, at);

create table sluice.limit_key (
    name         text             not null,
    key          text             not null,
    tokens       double precision not null default 0,
    filled_at    timestamptz,
    closed_until timestamptz,
    idle_from    timestamptz      not null,
    primary key (name, key)
);
comment on table sluice.limit_key is 'Limit keys, such as hosts, of limits that are per key, about which there is something to say. Upkeep deletes the others.';
comment on column sluice.limit_key.name is 'the name of the limit';
comment on column sluice.limit_key.key is 'the limit key';
comment on column sluice.limit_key.tokens is 'tokens in the bucket of the key''s rate, in jobs';
comment on column sluice.limit_key.filled_at is 'when a claim last filled the bucket; null: never';
comment on column sluice.limit_key.closed_until is 'until when the key is closed; null: it is open';
comment on column sluice.limit_key.idle_from is 'from when on the bucket is full and the key open';
create index limit_key_idle on sluice.limit_key (idle_from);

create table sluice.limit_lane (
    name    text        not null,
    key     text        not null,
    queue   text        not null,
    wake_at timestamptz not null,
    primary key (name, key, queue)
);
comment on table sluice.limit_lane is 'Limit keys of queues with parked jobs, which no claim walks over. A claim lets the jobs in when there is room.';
comment on column sluice.limit_lane.name is 'the name of the limit';
comment on column sluice.limit_lane.key is 'the limit key';
comment on column sluice.limit_lane.queue is 'the name of the queue';
comment on column sluice.limit_lane.wake_at is 'when a claim is to look for room; -infinity: at once';
create index limit_lane_wake on sluice.limit_lane (queue, name, wake_at);

create table sluice.limit_change (
    name text        not null,
    key  text,
    at   timestamptz not null default now()
);
comment on table sluice.limit_change is 'Limit keys that may have got room, for the next claim, which deletes the row.';
comment on column sluice.limit_change.name is 'the name of the limit';
comment on column sluice.limit_change.key is 'the limit key; null: every key of the limit';
comment on column sluice.limit_change.at is 'when the transaction of the change began';
create index limit_change_at on sluice.limit_change (name, at);

create table sluice.permit (
    queue      text        not null,
    claimed_at timestamptz not null,
    token      uuid        not null,
    jobs       bigint      not null,
    begun      bigint      not null default 0,
    gone       bigint      not null default 0,
    check_at    timestamptz not null,
    primary key (queue, claimed_at, token)
);
comment on table sluice.permit is 'Jobs that claims took from queues with a rate. Upkeep and holders report which of them began, and which never will.';
comment on column sluice.permit.queue is 'the name of the queue; of a limit, @ and its name';
comment on column sluice.permit.claimed_at is 'when the claim was made';
comment on column sluice.permit.token is 'the token of the claim';
comment on column sluice.permit.jobs is 'jobs that the claim took';
comment on column sluice.permit.begun is 'jobs of the claim that began';
comment on column sluice.permit.gone is 'jobs of the claim that will never begin';
comment on column sluice.permit.check_at is 'when to check whether the holder still has the jobs';

create table sluice.started (
    queue text        not null,
    at    timestamptz not null,
    jobs  bigint      not null,
    primary key (queue, at)
) with (fillfactor = 50);
comment on table sluice.started is 'Starts of jobs in queues with a rate, by which windows are counted.';
comment on column sluice.started.queue is 'the name of the queue; of a limit, @ and its name';
comment on column sluice.started.at is 'the instant until which the jobs started';
comment on column sluice.started.jobs is 'jobs that started since the row before';

-- Engine and orphan runs. Runs of jobs that have ended.

create table sluice.orphan_run (
    job_id       uuid        not null,
    queue        text        not null,
    engine       text        not null,
    ref          text        not null,
    cancelled_at timestamptz not null default now(),
    tenant       text        not null default '',
    generation   integer     not null default 0,
    claimed_at   timestamptz,
    started      boolean     not null default false,
    beside       boolean     not null default false,
    terminate    boolean     not null default false,
    limit_key    text,
    cost         integer     not null default 1,
    primary key (job_id, ref)
);
comment on table sluice.orphan_run is 'Orphan runs: runs that were intended or open when their jobs ended. They go on until their engine says that they ended.';
comment on column sluice.orphan_run.job_id is 'the id of the job';
comment on column sluice.orphan_run.queue is 'the queue of the job';
comment on column sluice.orphan_run.engine is 'the place of the run, by engine';
comment on column sluice.orphan_run.ref is 'the name of the run';
comment on column sluice.orphan_run.cancelled_at is 'when the job ended';
comment on column sluice.orphan_run.tenant is 'the tenant of the job; empty: none';
comment on column sluice.orphan_run.generation is 'the life of the job that the run belongs to';
comment on column sluice.orphan_run.claimed_at is 'when the dispatcher claimed the job; null: unknown';
comment on column sluice.orphan_run.started is 'the engine had the run; false: it may never start';
comment on column sluice.orphan_run.beside is 'a person let the job run beside this run';
comment on column sluice.orphan_run.terminate is 'a person asked upkeep to terminate the run';
comment on column sluice.orphan_run.limit_key is 'the limit key of the job when the run began; null: none';
comment on column sluice.orphan_run.cost is 'what the run takes of limits by cost: the cost of the job when the run began';
create index orphan_run_held on sluice.orphan_run (queue, tenant);
create index orphan_run_limit_key on sluice.orphan_run (queue, limit_key) where limit_key is not null;
-- Expressions keep the planner from this index when it looks for the runs of one job or one tenant.
create index orphan_run_order on sluice.orphan_run ((queue || ''), cancelled_at, uuid_send(job_id));

create table sluice.hold (
    job_id  uuid        primary key,
    queue   text        not null,
    reason  text        not null,
    actor   text        not null,
    held_at timestamptz not null default now(),
    behind  uuid
);
comment on table sluice.hold is 'Holds: queued jobs that no claim takes until somebody releases them. Such a job waits for itself. The row goes when the job ends.';
comment on column sluice.hold.job_id is 'the id of the job';
comment on column sluice.hold.queue is 'the queue of the job';
comment on column sluice.hold.reason is 'why the job is held';
comment on column sluice.hold.actor is 'the person or program that holds the job';
comment on column sluice.hold.held_at is 'when the hold began';
comment on column sluice.hold.behind is 'the id of the job that it waited for when the hold began; null: none';
create index hold_queue on sluice.hold (queue, job_id);

create table sluice.progress (
    id          uuid             primary key,
    claimed_at  timestamptz      not null,
    fraction    double precision not null,
    message     text             not null,
    reported_at timestamptz      not null default now()
) with (fillfactor = 50);
comment on table sluice.progress is 'How far running jobs have come, by their handlers. A row counts while the job has the claim of claimed_at; upkeep deletes it later.';
comment on column sluice.progress.id is 'the id of the job';
comment on column sluice.progress.claimed_at is 'when the holder that reported claimed the job';
comment on column sluice.progress.fraction is 'the part that is done, from 0 to 1';
comment on column sluice.progress.message is 'one line for people; empty: none';
comment on column sluice.progress.reported_at is 'when the report was stored';

-- Processes. Heartbeats and leaders.

create table sluice.holder (
    id      text        primary key,
    role    text        not null,
    queues  text[]      not null default '{}',
    slots   integer     not null default 0,
    busy    integer     not null default 0,
    version text        not null default '',
    started timestamptz not null default now(),
    seen    timestamptz not null default now(),
    conditions text        not null default '',
    counts  boolean     not null default false,
    protocol integer    not null default 0,
    mode    text        not null default ''
);
comment on table sluice.holder is 'Processes that claim jobs or tend them, by their last heartbeat.';
comment on column sluice.holder.id is 'host:pid:nonce of the process';
comment on column sluice.holder.role is 'worker, dispatcher, upkeep or forwarder';
comment on column sluice.holder.queues is 'queues that the process claims from';
comment on column sluice.holder.slots is 'jobs that the process can run at once';
comment on column sluice.holder.busy is 'jobs that the process runs now; of a dispatcher: claimed and not yet started';
comment on column sluice.holder.version is 'the version of the program';
comment on column sluice.holder.started is 'when the process sent its first heartbeat';
comment on column sluice.holder.seen is 'when the process sent its last heartbeat';
comment on column sluice.holder.conditions is 'conditions that keep the process from its work, as JSON; empty: none';
comment on column sluice.holder.counts is 'the process counts its work in the statistics';
comment on column sluice.holder.protocol is 'the protocol of the process''s library; 0: the process does not say';
comment on column sluice.holder.mode is 'working, quiesced or stopping; empty: the process does not say';

create table sluice.instruction (
    scope      text        not null check (scope in ('holder', 'version', 'all')),
    name       text        not null,
    wanted     text        not null check (wanted in ('work', 'quiesce', 'stop')),
    until      timestamptz,
    changed_at timestamptz not null,
    changed_by text        not null default '',
    reason     text        not null default '',
    version    bigint      not null default 1,
    act_id     uuid        not null,
    primary key (scope, name)
);
comment on table sluice.instruction is 'Instructions to processes. Of those that choose a process, the newest that has not ended counts. Heartbeats return it.';
comment on column sluice.instruction.scope is 'holder, version or all';
comment on column sluice.instruction.name is 'the id of the holder, or the version; empty: all';
comment on column sluice.instruction.wanted is 'work, quiesce or stop';
comment on column sluice.instruction.until is 'when the instruction ends; null: when a newer one lifts it';
comment on column sluice.instruction.changed_at is 'when somebody gave it; no two have the same instant';
comment on column sluice.instruction.changed_by is 'the actor';
comment on column sluice.instruction.reason is 'why the actor gave it';
comment on column sluice.instruction.version is 'counts the instructions to the target, from 1';
comment on column sluice.instruction.act_id is 'the id of the act that gave it';

create table sluice.lead (
    task   text        primary key,
    holder text        not null,
    since  timestamptz not null,
    until  timestamptz not null
);
comment on table sluice.lead is 'Leaders of tasks that one process does at a time: upkeep, and following the runs of each engine.';
comment on column sluice.lead.task is 'the name of the task';
comment on column sluice.lead.holder is 'the id of the process that leads';
comment on column sluice.lead.since is 'when the process began to lead';
comment on column sluice.lead.until is 'when the lead ends unless the process renews it';

-- Audit. Entries, and the hash chain over them. Programs only add rows.

create table sluice.audit (
    seq        bigint      generated always as identity primary key,
    at         timestamptz not null default now(),
    actor      text        not null,
    object     text        not null,
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
comment on table sluice.audit is 'Acts and notable moves: actor, object, time and reason. Upkeep deletes an entry only after a seal says so.';
comment on column sluice.audit.seq is 'the number of the entry';
comment on column sluice.audit.at is 'when the act was stored';
comment on column sluice.audit.actor is 'the person or program that acted';
comment on column sluice.audit.object is 'the kind of the object, such as job, queue, tenant or tier';
comment on column sluice.audit.name is 'the name of the object; of a job: its queue';
comment on column sluice.audit.event is 'the name of the act or move';
comment on column sluice.audit.job_id is 'the id of the job; null: the object is no job';
comment on column sluice.audit.generation is 'the life of the job; 0: the object is no job';
comment on column sluice.audit.from_state is 'the state of the job before; empty: none';
comment on column sluice.audit.to_state is 'the state of the job after; empty: none';
comment on column sluice.audit.reason is 'why the actor did it; empty: not given';
comment on column sluice.audit.before is 'the object before the change; null: none';
comment on column sluice.audit.after is 'the object after the change; null: none';
comment on column sluice.audit.act_id is 'the id of the act, which all its entries share; null: none';
create index audit_job on sluice.audit (job_id, seq) where job_id is not null;
create index audit_object on sluice.audit (object, name, seq) where object <> 'job';
create index audit_change on sluice.audit (object, name, seq) where event = 'change';
create index audit_act on sluice.audit (act_id) where act_id is not null;

create table sluice.audit_seal (
    no              bigint      primary key check (no > 0),
    at              timestamptz not null,
    upto            bigint      not null,
    previous        bytea       not null,
    notable_entries bigint      not null,
    notable_hash    bytea       not null,
    notable_gone    bigint      not null,
    notable_keep_ms bigint      not null check (notable_keep_ms >= 0),
    full_entries    bigint      not null,
    full_hash       bytea       not null,
    full_gone       bigint      not null,
    full_keep_ms    bigint      not null check (full_keep_ms >= 0),
    hash            bytea       not null
);
comment on table sluice.audit_seal is 'Seals, the hash chain over the audit. Each covers the entries after the seal before it. Package audit defines the hashes.';
comment on column sluice.audit_seal.no is 'the number of the seal, from 1';
comment on column sluice.audit_seal.at is 'when upkeep made the seal';
comment on column sluice.audit_seal.upto is 'the last audit seq that the seal covers';
comment on column sluice.audit_seal.previous is 'the hash of the seal before';
comment on column sluice.audit_seal.notable_entries is 'entries of the level notable that the seal covers';
comment on column sluice.audit_seal.notable_hash is 'the hash of these entries';
comment on column sluice.audit_seal.notable_gone is 'the seal up to which retention has deleted entries of the level notable; 0: none';
comment on column sluice.audit_seal.notable_keep_ms is 'ms that upkeep keeps entries of the level notable; 0: for ever';
comment on column sluice.audit_seal.full_entries is 'entries of the level full that the seal covers';
comment on column sluice.audit_seal.full_hash is 'the hash of these entries';
comment on column sluice.audit_seal.full_gone is 'the seal up to which retention has deleted entries of the level full; 0: none';
comment on column sluice.audit_seal.full_keep_ms is 'ms that upkeep keeps entries of the level full; 0: for ever';
comment on column sluice.audit_seal.hash is 'the hash of all fields above';

create table sluice.audit_batch (
    seal  bigint not null,
    level text   not null check (level in ('notable', 'full')),
    body  bytea  not null,
    primary key (seal, level)
);
comment on table sluice.audit_batch is 'Marks of the entries that a seal covers. By them, a check names the entry that somebody changed.';
comment on column sluice.audit_batch.seal is 'the number of the seal';
comment on column sluice.audit_batch.level is 'notable or full';
comment on column sluice.audit_batch.body is 'a hash over all digests, then a mark of each entry';
-- The bytes are as good as random: compression would be in vain.
alter table sluice.audit_batch alter column body set storage external;

-- Statistics and forecast. Counts by buckets of time, and jobs by the time at which they fall due.

create table sluice.stat (
    every_s      integer     not null check (every_s in (10, 60, 3600)),
    at           timestamptz not null,
    queue        text        not null,
    enqueued     bigint      not null,
    requeued     bigint      not null,
    claimed      bigint      not null,
    dispatched   bigint      not null,
    completed    bigint      not null,
    dead         bigint      not null,
    cancelled    bigint      not null,
    uncertain    bigint      not null,
    failed       bigint      not null,
    released     bigint      not null,
    recovered    bigint      not null,
    start_failed bigint      not null,
    wait         text        not null,
    run          text        not null,
    total        text        not null,
    level        text        not null,
    tenants      text        not null,
    primary key (every_s, at, queue)
) with (fillfactor = 70);
comment on table sluice.stat is 'Statistics of a queue in one bucket of time. Bucket n of a histogram ends at 0.1 ms * 2^(n/8).';
comment on column sluice.stat.every_s is 'seconds of the bucket: 10, 60 or 3,600';
comment on column sluice.stat.at is 'when the bucket begins';
comment on column sluice.stat.queue is 'the name of the queue';
comment on column sluice.stat.enqueued is 'new jobs';
comment on column sluice.stat.requeued is 'jobs that a person gave a new life';
comment on column sluice.stat.claimed is 'claims of workers and dispatchers';
comment on column sluice.stat.dispatched is 'runs that an engine took';
comment on column sluice.stat.completed is 'jobs that completed';
comment on column sluice.stat.dead is 'jobs that became dead letters';
comment on column sluice.stat.cancelled is 'jobs that were cancelled';
comment on column sluice.stat.uncertain is 'jobs that became uncertain';
comment on column sluice.stat.failed is 'attempts that failed';
comment on column sluice.stat.released is 'claims that holders handed back uncounted';
comment on column sluice.stat.recovered is 'claims that upkeep took back after their lease';
comment on column sluice.stat.start_failed is 'runs that an engine did not start';
comment on column sluice.stat.wait is 'histogram of the time from due to claim, as a JSON object with the count of each bucket';
comment on column sluice.stat.run is 'histogram of the time from claim to end, of completed jobs';
comment on column sluice.stat.total is 'histogram of the time from due to end, of completed jobs';
comment on column sluice.stat.level is 'the worst look of upkeep at its ready jobs, as a JSON object; null as JSON: none';
comment on column sluice.stat.tenants is 'the same figures of the largest tenants, as a JSON object by name';

create table sluice.stat_part (
    at     timestamptz not null,
    queue  text        not null,
    holder text        not null,
    body   text        not null,
    primary key (at, queue, holder)
);
comment on table sluice.stat_part is 'Counts of one holder in 10 s, until upkeep adds them to table stat.';
comment on column sluice.stat_part.at is 'when the 10 s begin';
comment on column sluice.stat_part.queue is 'the name of the queue';
comment on column sluice.stat_part.holder is 'the id of the process';
comment on column sluice.stat_part.body is 'figures of tenants by name, as JSON; the empty name has those of the whole queue';
-- Upkeep reads a body once, 60 s later: compression costs more than it saves.
alter table sluice.stat_part alter column body set storage external;

create table sluice.stat_holder (
    holder text        primary key,
    at     timestamptz not null
) with (fillfactor = 70);
comment on table sluice.stat_holder is 'The last bucket that each holder sent, so that nothing counts twice.';
comment on column sluice.stat_holder.holder is 'the id of the process';
comment on column sluice.stat_holder.at is 'when the bucket begins';

create table sluice.stat_fold (
    one boolean     primary key default true check (one),
    at  timestamptz not null
);
comment on table sluice.stat_fold is 'The lock of the sums. Upkeep locks the one row while it adds up.';
comment on column sluice.stat_fold.one is 'always true';
comment on column sluice.stat_fold.at is 'when upkeep last locked the row';

create table sluice.stat_call (
    at     timestamptz not null default now(),
    queue  text        not null,
    tenant text        not null,
    event  text        not null,
    jobs   integer     not null,
    waits  bigint[],
    runs   bigint[],
    totals bigint[]
);
comment on table sluice.stat_call is 'Counts of calls of SQL functions, until upkeep adds them up. Each call adds a row in the transaction of the move.';
comment on column sluice.stat_call.at is 'when the call was made';
comment on column sluice.stat_call.queue is 'the name of the queue';
comment on column sluice.stat_call.tenant is 'the tenant; empty: none';
comment on column sluice.stat_call.event is 'the name of the move';
comment on column sluice.stat_call.jobs is 'jobs that the call moved';
comment on column sluice.stat_call.waits is 'µs from due to claim, one for each job';
comment on column sluice.stat_call.runs is 'µs from claim to end, one for each job';
comment on column sluice.stat_call.totals is 'µs from due to end, one for each job';

create table sluice.wave_count (
    queue      text             primary key,
    counted_at timestamptz      not null,
    took_ms    double precision not null
);
comment on table sluice.wave_count is 'When upkeep last counted the jobs of a queue for the forecast. A queue without a row was never counted.';
comment on column sluice.wave_count.queue is 'the name of the queue';
comment on column sluice.wave_count.counted_at is 'when upkeep counted';
comment on column sluice.wave_count.took_ms is 'ms that the whole count took';

create table sluice.wave (
    queue   text        not null,
    part    text        not null check (part in ('due', 'in_flight', 'blocked', 'minute', 'hour', 'later')),
    at      timestamptz not null,
    jobs    bigint      not null,
    tenants text        not null default '{}',
    primary key (queue, part, at)
) with (fillfactor = 70);
comment on table sluice.wave is 'The forecast: jobs of a queue by the time at which they fall due.';
comment on column sluice.wave.queue is 'the name of the queue';
comment on column sluice.wave.part is 'due, in_flight, blocked, minute, hour or later';
comment on column sluice.wave.at is 'when the minute or hour begins; of other parts: the beginning of 1970';
comment on column sluice.wave.jobs is 'jobs of the part';
comment on column sluice.wave.tenants is 'jobs of the largest tenants, as a JSON object by name; other tenants have the rest';

-- Operations. Acts on all jobs that match a query.

create table sluice.operation (
    id         uuid        primary key,
    version    bigint      not null default 1,
    kind       text        not null,
    state      text        not null,
    created_at timestamptz not null default now(),
    ended_at   timestamptz,
    body       text        not null
);
comment on table sluice.operation is 'Operations. Upkeep carries them out in batches, and writes the row for each batch.';
comment on column sluice.operation.id is 'the id of the operation';
comment on column sluice.operation.version is 'counts the writes of the row, from 1';
comment on column sluice.operation.kind is 'the act, such as requeue or cancel';
comment on column sluice.operation.state is 'the state of the operation';
comment on column sluice.operation.created_at is 'when a person began the operation';
comment on column sluice.operation.ended_at is 'when the operation ended; null: work is left';
comment on column sluice.operation.body is 'terms, counts and progress, as JSON';
create index operation_open on sluice.operation (id) where ended_at is null;

-- Schedules. Recurring jobs.

create table sluice.schedule (
    name       text        primary key,
    queue      text        not null,
    version    bigint      not null default 1,
    next_at    timestamptz,
    definition text        not null,
    progress   text        not null,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
) with (fillfactor = 70);
comment on table sluice.schedule is 'Schedules. Upkeep fires each one that is due, and writes its row with the fire.';
comment on column sluice.schedule.name is 'the name of the schedule';
comment on column sluice.schedule.queue is 'the queue of the schedule''s jobs';
comment on column sluice.schedule.version is 'counts the changes of the definition, from 1';
comment on column sluice.schedule.next_at is 'the next fire; null: there is none';
comment on column sluice.schedule.definition is 'when the schedule fires and which job a fire makes, as JSON';
comment on column sluice.schedule.progress is 'counts and the last fires, as JSON';
comment on column sluice.schedule.changed_at is 'when the last change was stored';
comment on column sluice.schedule.changed_by is 'the person or program that made the last change';
comment on column sluice.schedule.reason is 'why the last change was made';
create index schedule_next on sluice.schedule (next_at) where next_at is not null;
create index schedule_queue on sluice.schedule (queue, name collate "C"); -- no walk by a name alone fits it

-- Batches. Groups of jobs, their counts and callbacks.

create table sluice.batch (
    id           uuid        primary key,
    name         text        not null default '',
    parent       uuid,
    callbacks    text        not null default '',
    created_at   timestamptz not null default now(),
    created_by   text        not null default '',
    closed_at    timestamptz,
    completed_at timestamptz,
    succeeded_at timestamptz,
    died_at      timestamptz,
    paused       text        not null default ''
);
comment on table sluice.batch is 'Batches. An enqueue reads the row of its batch, and no end of a job does.';
comment on column sluice.batch.id is 'the id of the batch, a UUID';
comment on column sluice.batch.name is 'a name for people; empty: none';
comment on column sluice.batch.parent is 'the id of the batch that it is in; null: none';
comment on column sluice.batch.callbacks is 'the jobs that it enqueues on complete, on success and on the first death, as JSON; empty: none';
comment on column sluice.batch.created_at is 'when it was opened';
comment on column sluice.batch.created_by is 'the person or program that opened it';
comment on column sluice.batch.closed_at is 'since when no job can be added; null: it is open';
comment on column sluice.batch.completed_at is 'when upkeep saw that all jobs had ended; null: not yet';
comment on column sluice.batch.succeeded_at is 'when upkeep saw that all jobs had completed; null: not yet';
comment on column sluice.batch.died_at is 'when upkeep saw the first dead job; null: none yet';
comment on column sluice.batch.paused is 'the reason for which it is paused; empty: it is not';
create index batch_in on sluice.batch (parent, id) where parent is not null;
create index batch_unfinished on sluice.batch (id) where completed_at is null;
create index batch_complete on sluice.batch (completed_at) where completed_at is not null;

create table sluice.batch_change (
    xid   bigint  not null default txid_current(),
    batch uuid    not null,
    kind  text    not null check (kind in ('total', 'completed', 'dead', 'cancelled', 'died')),
    jobs  integer not null
);
comment on table sluice.batch_change is 'Changes of the counts of batches. Statements that store, end or revive jobs only add rows, so they never wait for one another. Upkeep adds them up and deletes them.';
comment on column sluice.batch_change.xid is 'the transaction that made the change';
comment on column sluice.batch_change.batch is 'the id of the batch';
comment on column sluice.batch_change.kind is 'the count: total, completed, dead or cancelled; died: a job has died in a batch that is in it';
comment on column sluice.batch_change.jobs is 'how many jobs more; 0: upkeep is to look at the batch';
create index batch_change_xid on sluice.batch_change (xid);

create table sluice.batch_count (
    batch     uuid   primary key,
    total     bigint not null,
    completed bigint not null,
    dead      bigint not null,
    cancelled bigint not null
) with (fillfactor = 50);
comment on table sluice.batch_count is 'Counts of batches, without the changes that upkeep has not added up. Upkeep alone writes it.';
comment on column sluice.batch_count.batch is 'the id of the batch';
comment on column sluice.batch_count.total is 'jobs that were added';
comment on column sluice.batch_count.completed is 'jobs that have completed';
comment on column sluice.batch_count.dead is 'jobs that are dead';
comment on column sluice.batch_count.cancelled is 'jobs that were cancelled';

create table sluice.batch_counted (
    one  boolean  primary key default true check (one),
    xid  bigint   not null default 0,
    open bigint[] not null default '{}'
) with (fillfactor = 50);
comment on table sluice.batch_counted is 'How far upkeep has added up changes. Upkeep locks the one row meanwhile.';
comment on column sluice.batch_counted.one is 'always true';
comment on column sluice.batch_counted.xid is 'all changes of earlier transactions are added up, but for those in open; after a restore into another cluster it may be of the future, and means none';
comment on column sluice.batch_counted.open is 'earlier transactions that were open then';

-- Tokens. Who may call the HTTP API.

create table sluice.access_token (
    name       text        primary key,
    hash       text        not null,
    old_hash   text,
    terms      text        not null,
    used_at    timestamptz,
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
) with (fillfactor = 70);
comment on table sluice.access_token is 'Tokens of the HTTP API. A row has hashes of secrets, never a secret.';
comment on column sluice.access_token.name is 'the name of the token, which the audit shows';
comment on column sluice.access_token.hash is 'the SHA-256 of the secret, in hexadecimal digits';
comment on column sluice.access_token.old_hash is 'the SHA-256 of the secret before the last rotation; null: none';
comment on column sluice.access_token.terms is 'role, bounds and ends of the token, as JSON';
comment on column sluice.access_token.used_at is 'when the token was used last, to about a minute; null: never';
comment on column sluice.access_token.version is 'counts the changes of the row, from 1';
comment on column sluice.access_token.changed_at is 'when the last change was stored';
comment on column sluice.access_token.changed_by is 'the person or program that made the last change';
comment on column sluice.access_token.reason is 'why the last change was made';
create unique index access_token_hash on sluice.access_token (hash);
create unique index access_token_old_hash on sluice.access_token (old_hash);

-- Notes on groups of dead letters.

create table sluice.dead_note (
    fingerprint text        collate "C" primary key,
    note        text        not null default '',
    owner       text        not null default '',
    resolved_at timestamptz,
    version     bigint      not null default 1,
    changed_at  timestamptz not null default now(),
    changed_by  text        not null default '',
    reason      text        not null default ''
);
comment on table sluice.dead_note is 'Notes on groups of dead letters. A note outlives the dead letters of its group.';
comment on column sluice.dead_note.fingerprint is 'the fingerprint of the group';
comment on column sluice.dead_note.note is 'what people have found out';
comment on column sluice.dead_note.owner is 'the person or team that looks after the cause; empty: nobody';
comment on column sluice.dead_note.resolved_at is 'when the cause was resolved; null: it is open';
comment on column sluice.dead_note.version is 'counts the changes of the row, from 1';
comment on column sluice.dead_note.changed_at is 'when the last change was stored';
comment on column sluice.dead_note.changed_by is 'the person or program that made the last change';
comment on column sluice.dead_note.reason is 'why the last change was made';

-- Alerts. Rules, their findings, silences and receivers. A notification is a job in the queue of its receiver.

create table sluice.alert_rule (
    name       text             not null,
    queue      text             not null default '',
    metric     text             not null,
    op         text             not null check (op in ('>', '<')),
    threshold  double precision not null,
    rate_share double precision not null default 0 check (rate_share between 0 and 1),
    for_ms     bigint           not null default 0 check (for_ms >= 0),
    window_ms  bigint           not null default 0 check (window_ms >= 0),
    severity   text             not null check (severity in ('note', 'warning', 'error', 'critical')),
    covers     text             not null default '',
    summary    text             not null default '',
    runbook    text             not null default '',
    disabled   boolean          not null default false,
    version    bigint           not null default 1,
    changed_at timestamptz      not null default now(),
    changed_by text             not null default '',
    reason     text             not null default '',
    primary key (name, queue)
);
comment on table sluice.alert_rule is 'Rules of alerts that people changed or added. Programs know the presets.';
comment on column sluice.alert_rule.name is 'the name of the rule';
comment on column sluice.alert_rule.queue is 'the one queue of the rule; empty: all that covers names';
comment on column sluice.alert_rule.metric is 'the name of the metric that the rule reads';
comment on column sluice.alert_rule.op is 'the side of the threshold, > or <, on which the alert fires';
comment on column sluice.alert_rule.threshold is 'the threshold, in the unit of the metric';
comment on column sluice.alert_rule.rate_share is 'share of the queue''s rate, 0 to 1, that bounds the threshold; 0: no bound';
comment on column sluice.alert_rule.for_ms is 'ms that the condition must hold before the alert fires';
comment on column sluice.alert_rule.window_ms is 'ms that a metric of a period covers';
comment on column sluice.alert_rule.severity is 'note, warning, error or critical';
comment on column sluice.alert_rule.covers is 'the queues that the rule covers, unless queue names one';
comment on column sluice.alert_rule.summary is 'one sentence about the problem';
comment on column sluice.alert_rule.runbook is 'steps for a person, one a line';
comment on column sluice.alert_rule.disabled is 'upkeep does not evaluate the rule';
comment on column sluice.alert_rule.version is 'counts the changes of the row, from 1';
comment on column sluice.alert_rule.changed_at is 'when the last change was stored';
comment on column sluice.alert_rule.changed_by is 'the person or program that made the last change';
comment on column sluice.alert_rule.reason is 'why the last change was made';

create table sluice.alert (
    rule          text             not null,
    queue         text             not null default '',
    state         text             not null check (state in ('inactive', 'pending', 'firing', 'silenced')),
    since         timestamptz      not null,
    pending_since timestamptz,
    fired_at      timestamptz,
    resolved_at   timestamptz,
    notified      boolean          not null default false,
    value         double precision not null default 0,
    threshold     double precision not null default 0,
    severity      text             not null,
    evaluated_at     timestamptz,
    detail        text             not null default '',
    version       bigint           not null default 1,
    primary key (rule, queue)
);
comment on table sluice.alert is 'The state of each rule in a queue. A rule has a row once its condition held.';
comment on column sluice.alert.rule is 'the name of the rule';
comment on column sluice.alert.queue is 'the name of the queue; empty: the store';
comment on column sluice.alert.state is 'inactive, pending, firing or silenced';
comment on column sluice.alert.since is 'when the alert came into this state';
comment on column sluice.alert.pending_since is 'since when the condition has held; null: it does not';
comment on column sluice.alert.fired_at is 'when the alert fired last; null: never';
comment on column sluice.alert.resolved_at is 'when the last firing ended; null: never';
comment on column sluice.alert.notified is 'receivers know that the alert fires';
comment on column sluice.alert.value is 'the value at the last evaluation, in the unit of the metric';
comment on column sluice.alert.threshold is 'the threshold at the last evaluation, in the unit of the metric';
comment on column sluice.alert.severity is 'note, warning, error or critical';
comment on column sluice.alert.evaluated_at is 'when upkeep last evaluated the rule; null: never';
comment on column sluice.alert.detail is 'more about the value; empty: none';
comment on column sluice.alert.version is 'counts the writes of the row, from 1';

create table sluice.alert_silence (
    id         uuid        primary key,
    rule       text        not null default '',
    queue      text        not null default '',
    created_at timestamptz not null default now(),
    until      timestamptz not null,
    made_by    text        not null,
    reason     text        not null
);
comment on table sluice.alert_silence is 'Silences: until they end, Sluice notifies nobody.';
comment on column sluice.alert_silence.id is 'the id of the silence';
comment on column sluice.alert_silence.rule is 'the silenced rule; empty: every rule';
comment on column sluice.alert_silence.queue is 'the silenced queue; empty: every queue';
comment on column sluice.alert_silence.created_at is 'when a person made the silence';
comment on column sluice.alert_silence.until is 'when the silence ends';
comment on column sluice.alert_silence.made_by is 'the person that made the silence';
comment on column sluice.alert_silence.reason is 'why the person made it';

create table sluice.alert_receiver (
    name  text        primary key,
    queue text        not null,
    seen  timestamptz not null default now()
);
comment on table sluice.alert_receiver is 'Receivers of alerts that processes with upkeep have registered.';
comment on column sluice.alert_receiver.name is 'the name of the receiver';
comment on column sluice.alert_receiver.queue is 'the queue of the receiver, in which each notification is a job';
comment on column sluice.alert_receiver.seen is 'when a process last registered the receiver';

-- Followers. Statements of users that triggers run with each move of a job.

create table sluice.follower (
    name      text        primary key,
    queue     text        not null,
    states    text        not null default '',
    statement text        not null,
    made_at   timestamptz not null default now()
);
comment on table sluice.follower is 'The followers of queues.';
comment on column sluice.follower.name is 'the name of the follower';
comment on column sluice.follower.queue is 'the queue that it follows';
comment on column sluice.follower.states is 'states that it follows, separated by commas; empty: all';
comment on column sluice.follower.statement is 'the SQL statement that runs with each move';
comment on column sluice.follower.made_at is 'when somebody made the follower';

-- SQL functions. Grants and memory of the functions for other languages.

create table sluice.queue_grant (
    role  regrole not null,
    may   text    not null check (may in ('work', 'produce', 'operate', 'read')),
    queue text    not null,
    primary key (role, may, queue)
);
comment on table sluice.queue_grant is 'Rights of roles on functions. grant_worker, grant_producer, grant_operator, grant_reader and revoke_grants write it.';
comment on column sluice.queue_grant.role is 'the role of the database';
comment on column sluice.queue_grant.may is 'work, produce, operate or read';
comment on column sluice.queue_grant.queue is 'the name of the queue; ''*'': every queue';

create table sluice.pace (
    queue      text        not null,
    holder     text        not null,
    claimed_at timestamptz not null,
    primary key (queue, holder)
);
comment on table sluice.pace is 'Last claims by functions in queues with an interval. Programs remember their own claims.';
comment on column sluice.pace.queue is 'the name of the queue';
comment on column sluice.pace.holder is 'the id of the process';
comment on column sluice.pace.claimed_at is 'when the holder last claimed';

-- How many jobs wait in queues with max_waiting, or of tenants with tenant_max_waiting, as enqueues by functions know it. A sequence,
-- because sessions do not wait for each other there, and no rollback takes its value back. The second half is for tenants: a queue
-- and its tenants never share one.
do $$
begin
    for n in 0..31 loop
        execute format('create sequence sluice.room_%s', n);
    end loop;
end
$$;

create table sluice.recheck (
    job_id uuid not null
);
comment on table sluice.recheck is 'Ended jobs whose waiting jobs need another check, because two transactions saw each other half. Claims by functions delete the rows.';
comment on column sluice.recheck.job_id is 'the id of the job that ended';

create table sluice.function_set (
    one       boolean     primary key default true check (one),
    version   integer     not null,
    checksum  text        not null,
    installed timestamptz not null default now()
);
comment on table sluice.function_set is 'The text of the functions that the database has. It has one row.';
comment on column sluice.function_set.one is 'always true';
comment on column sluice.function_set.version is 'the version of the functions';
comment on column sluice.function_set.checksum is 'the checksum of the text';
comment on column sluice.function_set.installed is 'when a migration installed the functions';

-- Functions that triggers and views need. Functions for other languages are not part of the schema steps.

-- Tells claims that limits or settings have changed: they look at the tenant queues anew.
create function sluice.terms_changed() returns trigger language plpgsql set search_path = pg_catalog as $$
declare
    of_queue  text := '';
    of_tenant text := '';
begin
    if tg_table_name = 'queue' then
        of_queue := new.name;
    elsif tg_table_name = 'tenant' then
        of_tenant := case when tg_op = 'DELETE' then old.name else new.name end;
    else
        of_queue := case when tg_op = 'DELETE' then old.queue else new.queue end;
        of_tenant := case when tg_op = 'DELETE' then old.tenant else new.tenant end;
    end if;
    if of_tenant <> '' then -- not by its tenant queues: a claim may be making one in this moment, which cannot be seen yet
        insert into sluice.tenant_change (queue, tenant, jobs, terms)
        select f.queue, of_tenant, 0, true
        from sluice.flow f
        where of_queue = '' and f.queue not like '@%' or f.queue = of_queue;
        return null;
    end if;
    insert into sluice.tenant_change (queue, tenant, jobs, terms)
    select l.queue, l.tenant, 0, true
    from sluice.tenant_queue l
    where of_queue = '' or l.queue = of_queue;
    return null;
end
$$;
revoke all on function sluice.terms_changed() from public;

-- Refuses to change the audit, whoever tries.
create function sluice._audit_stays() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
begin
    raise exception 'sluice: table %: entries of the audit are only added', tg_table_name using errcode = 'insufficient_privilege';
end
$function$;

-- Refuses to delete more of the audit than the last seal says is gone by retention. The level full has entries that
-- Sluice writes only because the setting audit of a queue is full.
create function sluice._audit_goes() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
declare
    last   sluice.audit_seal;
    beyond boolean;
begin
    select s.* into last from sluice.audit_seal s order by s.no desc limit 1;
    if tg_table_name = 'audit' then
        select exists (
            select from gone g
            where g.seq > coalesce((
                select s.upto from sluice.audit_seal s
                where s.no = case when g.object = 'job' and g.event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release') then last.full_gone else last.notable_gone end
            ), 0)
        ) into beyond;
    elsif tg_table_name = 'audit_batch' then
        select exists (
            select from gone g where g.seal > coalesce(case g.level when 'full' then last.full_gone else last.notable_gone end, 0)
        ) into beyond;
    else
        select exists (select from gone g where last.no is null or g.no >= least(last.notable_gone, last.full_gone)) into beyond;
    end if;
    if beyond then
        raise exception 'sluice: table %: entries of the audit are only added; retention deletes those that a seal says are gone', tg_table_name
            using errcode = 'insufficient_privilege';
    end if;
    return null;
end
$function$;

-- Deletes the entries of a level that came after one seal, up to another, and their batches. It runs with the rights
-- of the owner: roles of programs may add to the audit and not delete. Triggers check that the last seal allows it.
create function sluice._forget_audit(of_level text, after_seal bigint, to_seal bigint) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    low     bigint := coalesce((select s.upto from sluice.audit_seal s where s.no = after_seal), -9223372036854775808);
    high    bigint := coalesce((select s.upto from sluice.audit_seal s where s.no = to_seal), 0);
    deleted bigint;
begin
    delete from sluice.audit a
    where a.seq > low and a.seq <= high
      and (a.object = 'job' and a.event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release')) = (of_level = 'full');
    get diagnostics deleted = row_count;
    delete from sluice.audit_batch b where b.seal > after_seal and b.seal <= to_seal and b.level = of_level;
    delete from sluice.audit_seal s
    where s.no < (select least(l.notable_gone, l.full_gone) from sluice.audit_seal l order by l.no desc limit 1);
    return deleted;
end
$function$;
revoke all on function sluice._forget_audit(text, bigint, bigint) from public;

-- Returns the text that bytes are in UTF-8; null: they are none. Everybody may call it, because it reads no table.
-- Views run it with the rights of the role that selects from them.
create function sluice._text_of(bytes bytea) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp as $function$
begin
    return convert_from(bytes, 'UTF8');
exception when others then
    return null;
end
$function$;
grant execute on function sluice._text_of(bytea) to public;

-- Tells claims that a limit key may have room: a job or an orphan run of it is no longer in flight, or a parked job does not wait
-- at its front any more.
create function sluice._key_room() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
begin
    if tg_table_name = 'live' then
        insert into sluice.limit_change (name, key)
        select n.name, old.limit_key
        from sluice.queue q
        cross join lateral unnest(string_to_array(q.limits, ',')) as g(name)
        join sluice.named_limit n on n.name = g.name and n.per_key
        where q.name = old.queue and (n.by_cost or not old.parked);
    else
        insert into sluice.limit_change (name, key)
        select n.name, old.limit_key
        from sluice.queue q
        cross join lateral unnest(string_to_array(q.limits, ',')) as g(name)
        join sluice.named_limit n on n.name = g.name and n.per_key
        where q.name = old.queue;
    end if;
    return null;
end
$function$;
revoke all on function sluice._key_room() from public;

-- Lets go of a parked job that gets another place, key or cost: when it is due, a claim judges it anew.
create function sluice._key_anew() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
begin
    new.parked := false;
    new.blocked_by := null;
    return new;
end
$function$;
revoke all on function sluice._key_anew() from public;

-- Tells claims that a limit per key has changed, or that a queue shares other limits: then its parked jobs wait for these. The locks
-- are those of claims, in the same order.
create function sluice._key_terms() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
begin
    if tg_table_name = 'named_limit' then
        insert into sluice.limit_change (name) values (new.name);
        -- A bucket fills by the new figures. It is full at the latest when all of it could have come since now.
        if new.rate > 0 and (new.rate <> old.rate or new.burst <> old.burst) then
            update sluice.limit_key
            set idle_from = greatest(idle_from, now() + make_interval(secs => greatest(new.burst, new.rate * new.rate_per_ms / 1000.0, 1) / new.rate))
            where name = new.name and tokens is not null;
        end if;
        return null;
    end if;
    perform from sluice.flow f
    where f.queue in (select '@' || g from unnest(string_to_array(old.limits, ',') || string_to_array(new.limits, ',')) as g)
    order by f.queue collate "C"
    for update;
    insert into sluice.limit_lane (name, key, queue, wake_at)
    select n.name, l.key, new.name, '-infinity'
    from (select distinct w.key from sluice.limit_lane w where w.queue = new.name) l
    cross join sluice.named_limit n
    where n.name = any (string_to_array(new.limits, ',')) and n.per_key
    on conflict (name, key, queue) do update set wake_at = excluded.wake_at;
    delete from sluice.limit_lane w where w.queue = new.name and not w.name = any (string_to_array(new.limits, ','));
    -- The jobs of the queue count no more in a limit that it does not share: other queues may have room.
    insert into sluice.limit_change (name)
    select n.name from sluice.named_limit n
    where n.per_key and n.name = any (string_to_array(old.limits, ',')) and not n.name = any (string_to_array(new.limits, ','));
    return null;
end
$function$;
revoke all on function sluice._key_terms() from public;

-- Gives a batch the pause of the batch that it is in, at the commit that opens it: a pause in between did not see the
-- batch. The lock makes the commit wait for a pause under way, and not for a transaction that closes the outer batch.
create function sluice._batch_opened() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $function$
declare
    why text;
begin
    select b.paused into why from sluice.batch b where b.id = new.parent for key share;
    update sluice.batch b set paused = why where b.id = new.id and b.paused <> why;
    return null;
end
$function$;
revoke all on function sluice._batch_opened() from public;

-- Triggers. Changed limits count at once, a batch takes on the pause of the batch around it, and the audit only grows.

create trigger key_room_moved after update of state on sluice.live for each row
    when (old.limit_key is not null and old.state in ('claimed', 'dispatched') and new.state not in ('claimed', 'dispatched'))
    execute function sluice._key_room();
-- A parked job that leaves, or is put off, held or edited, may have kept cheaper ones behind it, if the limit is by cost. One that a
-- claim lets in has not.
create trigger key_anew before update of due_at, priority, cost, limit_key on sluice.live for each row
    when (old.parked and new.parked and (new.due_at <> old.due_at or new.priority <> old.priority or new.cost <> old.cost
        or new.limit_key is distinct from old.limit_key))
    execute function sluice._key_anew();
create trigger key_room_parked after update of due_at, priority, cost, limit_key, parked on sluice.live for each row
    when (old.parked and (new.due_at <> old.due_at or new.priority <> old.priority or new.cost <> old.cost
        or new.limit_key is distinct from old.limit_key or not new.parked and new.blocked_by is not null))
    execute function sluice._key_room();
create trigger key_room_ended after delete on sluice.live for each row
    when (old.limit_key is not null and (old.state in ('claimed', 'dispatched') or old.parked))
    execute function sluice._key_room();
create trigger key_room_ended after delete on sluice.orphan_run for each row when (old.limit_key is not null)
    execute function sluice._key_room();
create trigger key_terms after update on sluice.named_limit for each row when (old.per_key or new.per_key) execute function sluice._key_terms();
create trigger key_terms after update on sluice.queue for each row when (old.limits <> new.limits) execute function sluice._key_terms();

create trigger terms_changed after insert or update or delete on sluice.tenant_limit
    for each row execute function sluice.terms_changed();
create trigger terms_changed after insert or update of tier or delete on sluice.tenant
    for each row execute function sluice.terms_changed();
create trigger terms_changed after update on sluice.queue for each row
    when (new.tenant_concurrency <> old.tenant_concurrency or new.tenant_rate <> old.tenant_rate or new.tenant_burst <> old.tenant_burst)
    execute function sluice.terms_changed();

-- A move copies batches as they are, and those are older.
create constraint trigger batch_opened after insert on sluice.batch deferrable initially deferred for each row
    when (new.parent is not null and new.created_at = now())
    execute function sluice._batch_opened();

create trigger audit_stays before update or truncate on sluice.audit for each statement execute function sluice._audit_stays();
create trigger audit_stays before update or truncate on sluice.audit_seal for each statement execute function sluice._audit_stays();
create trigger audit_stays before update or truncate on sluice.audit_batch for each statement execute function sluice._audit_stays();
create trigger audit_goes after delete on sluice.audit referencing old table as gone for each statement execute function sluice._audit_goes();
create trigger audit_goes after delete on sluice.audit_seal referencing old table as gone for each statement execute function sluice._audit_goes();
create trigger audit_goes after delete on sluice.audit_batch referencing old table as gone for each statement execute function sluice._audit_goes();

-- Rights. Default privileges may grant more on these three tables than roles need. The block takes that back, and
-- lets every role that adds entries call the function that deletes old ones. Such a role does not choose the number of
-- an entry: no seal could cover the entries between the last number and a much higher one.
do $do$
declare
    r text;
begin
    for r in
        select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class c cross join aclexplode(c.relacl) a
        where c.oid in ('sluice.audit'::regclass, 'sluice.audit_seal'::regclass, 'sluice.audit_batch'::regclass) and a.grantee <> c.relowner
    loop
        execute 'revoke update, delete, truncate on sluice.audit, sluice.audit_seal, sluice.audit_batch from ' || r;
    end loop;
    for r in
        select distinct quote_ident(pg_get_userbyid(a.grantee))
        from pg_class c cross join aclexplode(c.relacl) a
        where c.oid = 'sluice.audit'::regclass and a.grantee not in (0, c.relowner) and a.privilege_type = 'INSERT'
    loop
        execute 'revoke insert on sluice.audit from ' || r;
        execute 'grant insert (at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id) on sluice.audit to ' || r;
        execute 'grant select, insert on sluice.audit_seal, sluice.audit_batch to ' || r;
        execute 'grant execute on function sluice._forget_audit(text, bigint, bigint) to ' || r;
    end loop;
end
$do$;

-- Views.

create view sluice.jobs as
select j.id, j.queue, j.tenant, j.priority, j.key, j.labels, j.max_attempts, j.created_at,
       case when coalesce(l.generation, d.generation) = 1 then j.expires_at end as expires_at,
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
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, j.timeout_ms, j.batch_id, j.limit_key, j.cost, l.engine,
       sluice._text_of(j.payload) as payload_text,
       sluice._text_of(d.result) as result_text,
       case when l.id is null then d.dispatched_at else l.dispatched_at end as dispatched_at
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select * from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true;
comment on view sluice.jobs is 'One row per job, whatever its state: select from it. The columns payload_text and result_text show bytes as text.';

create view sluice.job_status as
select id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at, state, generation, due_at, attempts,
       releases, recoveries, holder, claimed_at, lease_until, blocked_by, ref, error, finished_at, order_key, after,
       after_failure, timeout_ms, engine, dispatched_at, batch_id, limit_key, cost
from sluice.jobs;
comment on view sluice.job_status is 'The view jobs without payload, result and checkpoint: readers and dashboards may select all of it.';

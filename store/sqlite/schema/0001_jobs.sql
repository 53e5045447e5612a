-- 0001 The whole schema, in the order of a job's life: settings, jobs, flow control, engines, processes, audit,
-- statistics, operations, schedules, tokens, alerts, followers; then views and triggers.
-- locks: the whole file, for as long as it takes to make empty tables.
-- works with programs from: 1
-- Instants are µs since 1970 in UTC. Columns that end in _ms hold ms, in _us µs. Ids and tokens are 16 bytes.
-- Columns with a check for 0 and 1, and keyed, in_tenant_queue, active and at_limit, are false or true.

-- Settings and limits. People set them. Processes read settings at most 1 s after a change.

-- The settings of each queue. A queue without a row has the defaults.
create table sluice_queue (
    name                text    primary key,                             -- the name of the queue
    version             integer not null default 1,                      -- counts the changes of the row, from 1
    changed_at          integer not null,                                -- when the last change was stored, in µs
    changed_by          text    not null default '',                     -- the person or program that made the last change
    reason              text    not null default '',                     -- why the last change was made
    paused              integer not null default 0 check (paused in (0, 1)), -- nobody claims jobs of the queue while it is true
    lease_ms            integer not null default 60000 check (lease_ms between 100 and 86400000), -- ms that a claim lasts unless its holder renews it
    timeout_ms          integer not null default 900000 check (timeout_ms between 0 and 2592000000), -- ms that an attempt may run; 0: no limit
    max_attempts        integer not null default 3 check (max_attempts between 1 and 10000), -- the failed attempt that buries a job
    max_recoveries      integer not null default 5 check (max_recoveries between 1 and 10000), -- the lost holder that buries a job as poison
    backoff_base_ms     integer not null default 2000 check (backoff_base_ms between 0 and 2592000000), -- ms of wait after the first failed attempt
    backoff_factor      real    not null default 2 check (backoff_factor between 1 and 100), -- multiplies the wait with each further failed attempt
    backoff_max_ms      integer not null default 60000 check (backoff_max_ms between backoff_base_ms and 2592000000), -- ms of the longest wait, before jitter
    backoff_jitter_ms   integer not null default 1000 check (backoff_jitter_ms between 0 and 86400000), -- ms that chance adds to the wait, from 0 up to this
    backoff_full_jitter integer not null default 0 check (backoff_full_jitter in (0, 1)), -- chance draws the whole wait, and adds no jitter
    recover_interval_ms integer not null default 5000 check (recover_interval_ms between 100 and 86400000), -- ms between two looks of upkeep for expired leases
    recover_batch       integer not null default 1000 check (recover_batch between 1 and 10000), -- jobs that upkeep recovers at most in one look
    keep_completed_ms   integer not null default 604800000 check (keep_completed_ms >= 0), -- ms that upkeep keeps completed jobs; 0: for ever
    keep_cancelled_ms   integer not null default 604800000 check (keep_cancelled_ms >= 0), -- ms that upkeep keeps cancelled jobs; 0: for ever
    keep_dead_ms        integer not null default 7776000000 check (keep_dead_ms >= 0), -- ms that upkeep keeps dead letters; 0: for ever
    payload_limit       integer not null default 1048576 check (payload_limit between 1 and 67108864), -- bytes of the largest payload
    payload_schema      text    not null default '',                     -- JSON Schema that payloads must match; empty: none
    audit               text    not null default 'notable' check (audit in ('notable', 'full')), -- moves that the audit records: notable ones, or every one (full)
    rate                real    not null default 0 check (rate between 0 and 1000000), -- jobs per second that may start in a window, of all processes; 0: no limit
    burst               integer not null default 0 check (burst between 0 and 1000000), -- jobs beyond the rate that may start in one window
    concurrency         integer not null default 0 check (concurrency between 0 and 1000000), -- jobs that may be claimed or dispatched at the same time; 0: no limit
    paused_until        integer,                                         -- when a paused queue opens by itself, in µs; null: when a person resumes it
    ageing              real    not null default 0.05 check (ageing between 0 and 1), -- share of claims, 0 to 1, that begin with another priority than 1
    fair                integer not null default 0 check (fair in (0, 1)), -- tenants take turns by their weights
    tenant_concurrency  integer not null default 0 check (tenant_concurrency between 0 and 1000000), -- one tenant's jobs that may be claimed or dispatched at the same time; 0: no limit
    tenant_rate         real    not null default 0 check (tenant_rate between 0 and 1000000), -- one tenant's jobs per second that may be claimed in a window; 0: no limit
    tenant_burst        integer not null default 0 check (tenant_burst between 0 and 1000000), -- one tenant's jobs beyond its rate that may be claimed in one window
    recorded            text,                                            -- the settings by name as the audit last recorded them, as JSON; null: never
    scheduled           text,                                            -- scheduled changes of the settings, as JSON; null: none
    batch               integer not null default 0 check (batch between 0 and 10000), -- jobs that one claim takes at most; 0: as many as the process has room for
    interval_ms         integer not null default 0 check (interval_ms between 0 and 86400000), -- ms between two claims of one process at the least
    claim_ahead_ms      integer not null default 0 check (claim_ahead_ms between 0 and 86400000), -- ms before its due time that an idle process may claim a job
    jitter_ms           integer not null default 0 check (jitter_ms between 0 and 86400000), -- ms that chance adds to the start of a claimed job, from 0 up to this
    run_timeout_ms      integer not null default 0 check (run_timeout_ms between 0 and 315360000000), -- ms that a run may take; 0: no limit
    run_results         integer not null default 0 check (run_results in (0, 1)), -- upkeep keeps the results of runs
    retry_runs          integer not null default 0 check (retry_runs in (0, 1)), -- a failed run is a failed attempt; false: it buries the job
    follow_interval_ms  integer not null default 2000 check (follow_interval_ms between 100 and 86400000), -- ms between two questions of upkeep which runs have ended
    max_waiting         integer not null default 0 check (max_waiting between 0 and 1000000), -- jobs that may wait before enqueues are refused; 0: no limit
    tenant_max_waiting  integer not null default 0 check (tenant_max_waiting between 0 and 1000000), -- one tenant's jobs that may wait before its enqueues are refused; 0: no limit
    shed                integer not null default 0 check (shed in (0, 1)), -- a full queue cancels waiting jobs of lower priority instead of refusing an enqueue
    limits              text    not null default '' check (length(cast(limits as blob)) <= 200), -- names of the limits that the queue shares, with commas between; empty: none
    keep_results_ms     integer not null default 0 check (keep_results_ms >= 0), -- ms that upkeep keeps results of ended jobs; 0: as long as the jobs
    rate_per_ms         integer not null default 1000 check (rate_per_ms between 1 and 315360000000), -- ms of the window of rate
    tenant_rate_per_ms  integer not null default 1000 check (tenant_rate_per_ms between 1 and 315360000000), -- ms of the window of tenant_rate
    engine              text    not null default '' check (length(cast(engine as blob)) <= 200), -- the engine that runs the jobs, by the name that dispatchers use; empty: workers run them
    run_namespace       text    not null default '' check (length(cast(run_namespace as blob)) <= 200), -- the engine's namespace; empty: the dispatcher's
    run_type            text    not null default '' check (length(cast(run_type as blob)) <= 200), -- the kind of run, such as a workflow type; empty: the queue's name
    run_task_queue      text    not null default '' check (length(cast(run_task_queue as blob)) <= 200), -- the engine's task queue; empty: the queue's name
    run_ref             text    not null default '' check (length(cast(run_ref as blob)) <= 200) -- the pattern of names of runs; empty: the default pattern
) strict;
-- Claims find the queues that share a limit by it.
create index sluice_queue_limits on sluice_queue (name) where limits <> '';

-- Limits that several queues share. The setting limits of a queue names them. Table sluice_flow has a row for each limit
-- with a rate, with @ before the name.
create table sluice_named_limit (
    name         text    primary key,                                   -- the name of the limit
    concurrency  integer not null default 0 check (concurrency between 0 and 1000000), -- jobs of all its queues that may be claimed or dispatched at the same time; 0: no limit
    rate         real    not null default 0 check (rate between 0 and 1000000),  -- jobs of all its queues per second that may start in a window; 0: no limit
    burst        integer not null default 0 check (burst between 0 and 1000000), -- jobs beyond the rate that may start in one window
    closed       integer not null default 0 check (closed in (0, 1)),   -- nobody claims jobs of its queues while it is true
    closed_until integer,                                               -- when a closed limit opens by itself, in µs; null: when a person opens it
    version      integer not null default 1,                            -- counts the changes of the row, from 1
    changed_at   integer not null,                                      -- when the last change was stored, in µs
    changed_by   text    not null default '',                           -- the person or program that made the last change
    reason       text    not null default '',                           -- why the last change was made
    rate_per_ms  integer not null default 1000 check (rate_per_ms between 1 and 315360000000), -- ms of the window of rate
    per_key      integer not null default 0 check (per_key in (0, 1)),   -- the figures count for each limit key of jobs apart
    by_cost      integer not null default 0 check (by_cost in (0, 1))    -- the figures count the costs of jobs; false: jobs
) without rowid;

-- The tenants that people have stored. Jobs may name others.
create table sluice_tenant (
    name       text    primary key,         -- the name of the tenant
    tier       text    not null default '', -- the tier of the tenant; empty: none
    version    integer not null default 1,  -- counts the changes of the row, from 1
    changed_at integer not null,            -- when the last change was stored, in µs
    changed_by text    not null default '', -- the person or program that made the last change
    reason     text    not null default ''  -- why the last change was made
);

-- The tiers of tenants, which share limits.
create table sluice_tier (
    name       text    primary key,         -- the name of the tier
    version    integer not null default 1,  -- counts the changes of the row, from 1
    changed_at integer not null,            -- when the last change was stored, in µs
    changed_by text    not null default '', -- the person or program that made the last change
    reason     text    not null default ''  -- why the last change was made
);

-- The limits of a tier or a tenant, in one queue or in all. Null says nothing: the nearest row that says something
-- counts.
create table sluice_tenant_limit (
    queue        text    not null default '',                            -- the queue; empty: every queue
    tier         text    not null default '',                            -- the tier; empty: the row is about a tenant
    tenant       text    not null default '',                            -- the tenant; empty: the row is about a tier
    concurrency  integer check (concurrency between 0 and 1000000),         -- jobs of a tenant that may be claimed or dispatched at the same time; 0: no limit
    rate         real    check (rate between 0 and 1000000),             -- jobs of a tenant per second that may be claimed in a window; 0: no limit
    burst        integer check (burst between 0 and 1000000),            -- jobs of a tenant beyond the rate that may be claimed in one window
    weight       integer check (weight between 1 and 1000),              -- share of a tenant beside the others, 1 to 1,000
    until        integer,                                                -- when the limits stop counting, in µs; null: never
    paused       integer not null default 0 check (paused in (0, 1)),    -- nobody claims jobs of the tenant while it is true
    paused_until integer,                                                -- when a paused tenant opens by itself, in µs; null: when a person resumes it
    version      integer not null default 1,                             -- counts the changes of the row, from 1
    changed_at   integer not null,                                       -- when the last change was stored, in µs
    changed_by   text    not null default '',                            -- the person or program that made the last change
    reason       text    not null default '',                            -- why the last change was made
    given        integer not null generated always as -- the row says something, so that its queue serves tenants apart
        (concurrency is not null or rate is not null or burst is not null or weight is not null or paused) stored,
    rate_per_ms  integer default 1000 check (rate_per_ms between 1 and 315360000000), -- ms of the window of rate
    primary key (queue, tier, tenant),
    check ((tier = '') <> (tenant = ''))
) without rowid;
create index sluice_tenant_limit_says on sluice_tenant_limit (queue) where given;
create index sluice_tenant_limit_end on sluice_tenant_limit (queue) where until is not null or paused_until is not null;
create index sluice_tenant_limit_tier on sluice_tenant_limit (tier, queue) where tier <> '';
create index sluice_tenant_limit_tenant on sluice_tenant_limit (tenant, queue) where tenant <> '';

-- The rule for new queues. It has one row, or none: then the defaults count.
create table sluice_queue_policy (
    id         integer primary key default 1 check (id = 1),             -- always 1
    max_queues integer not null default 10000 check (max_queues between 1 and 1000000), -- queues that the store takes at most
    declared   integer not null default 0 check (declared in (0, 1)),    -- a person must declare a queue; a job makes none
    version    integer not null default 1,                               -- counts the changes of the row, from 1
    changed_at integer not null,                                         -- when the last change was stored, in µs
    changed_by text    not null default '',                              -- the person or program that made the last change
    reason     text    not null default ''                               -- why the last change was made
) strict;

-- Jobs. From enqueue to history, with keys and order.

-- The producer's data. Sluice writes a row once; edits and coalesced duplicates change it.
create table sluice_job (
    seq           integer primary key,                                   -- the number of the job in the order of arrival
    id            blob    not null unique,                               -- the id of the job, a UUID
    queue         text    not null,                                      -- the queue of the job
    tenant        text    not null default '',                           -- the tenant of the job; empty: none
    priority      integer not null check (priority between 1 and 10),    -- 1 to 10; claims take 1 first
    key           text,                                                  -- the key that keeps twins out; null: none
    payload       blob    not null,                                      -- the data of the job, as JSON text
    labels        text,                                                  -- names and values for searches, as JSON; null: none
    max_attempts  integer,                                               -- the failed attempt that buries the job; null: the queue's setting
    created_at    integer not null,                                      -- when the producer enqueued the job, in µs
    expires_at    integer,                                               -- when Sluice cancels the job if it waits then in its first life, in µs; null: never
    order_key     text,                                                  -- jobs with the same order key run one at a time; null: none
    after         text,                                                  -- ids of the jobs that must end before this one, as a JSON array; null: none
    after_failure text,                                                  -- the fate of the job if one in after fails: cancel, run or wait, and behind it the exceptions, each a blank and ID=RULE; null: after is empty
    timeout_ms    integer,                                               -- how long an attempt or a run of the job may take, in ms; null: as the handler or the queue says
    batch_id      blob,                                                  -- the id of the batch that the job is in; null: none
    cost          integer,                                               -- the units that the job takes of limits by cost; null: 1
    limit_key     text                                                   -- the value, such as a host, by which limits that are per key bound the job; null: none
);
-- Searches by key, tenant or batch go along these indexes.
create index sluice_job_by_key on sluice_job (key) where key is not null;
create index sluice_job_by_tenant on sluice_job (tenant) where tenant <> '';
create index sluice_job_by_batch on sluice_job (batch_id) where batch_id is not null;

-- Unfinished jobs. Claims and moves write this narrow table only. Sluice deletes the row when the job ends.
create table sluice_live (
    seq           integer primary key,                                   -- the job's number
    queue         text    not null,                                      -- the queue of the job
    tenant        text    not null default '',                           -- the tenant of the job; empty: none
    priority      integer not null,                                      -- 1 to 10; claims take 1 first
    state         text    not null default 'queued' check (state in ('queued', 'claimed', 'dispatched', 'uncertain')), -- queued, claimed, dispatched or uncertain
    due_at        integer not null,                                      -- when the job may be claimed, in µs
    expires_at    integer,                                               -- when Sluice cancels the job if it waits then, in µs; null: never
    generation    integer not null default 1,                            -- the number of the job's life, from 1; a requeue begins the next
    attempts      integer not null default 0,                            -- failed attempts in this life
    releases      integer not null default 0,                            -- claims in this life that holders handed back uncounted
    recoveries    integer not null default 0,                            -- claims in this life whose holders were lost
    keyed         integer not null default 0,                            -- the job holds its key until it ends
    blocked_by    integer,                                               -- the seq of the job that must end first; null: none
    token         blob,                                                  -- proves the present or the last claim; null: nobody has claimed the job
    holder        text,                                                  -- the id of the process that claimed the job last
    claimed_at    integer,                                               -- when the holder claimed the job last, in µs
    lease_until   integer,                                               -- when the present lease ends unless the holder renews it, in µs
    ref           text,                                                  -- the name of the engine's run; null: none is intended or open
    error         text,                                                  -- the text of the last failure; null: none
    checkpoint    blob,                                                  -- progress that the handler saved, as JSON text; null: none
    in_tenant_queue       integer not null default 0,                            -- the job waits in its tenant's queue (table tenant queue)
    order_key     text,                                                  -- the job's order key; null: none
    engine        text,                                                  -- the place of the run that is intended or open, by engine; null: none
    run_of        blob,                                                  -- the job's id while a run is intended or open, by which runs are listed
    dispatched_at integer,                                               -- when the engine took the run, in µs; null: it has not
    batch_id      blob,                                                  -- the id of the batch that the job is in; null: none
    limit_key     text,                                                  -- the value by which limits that are per key bound the job; null: none
    cost          integer not null default 1,                            -- the units that the job takes of limits by cost
    parked        integer not null default 0                             -- the job waits for itself until a limit lets its limit key in (table limit_lane)
);
create index sluice_live_away on sluice_live (queue, state) where state in ('dispatched', 'uncertain');
create index sluice_live_expiry on sluice_live (expires_at) where expires_at is not null;
create index sluice_live_blocked on sluice_live (blocked_by) where blocked_by is not null;
-- Claims count jobs in flight by queue. Upkeep finds expired leases by it.
create index sluice_live_claimed on sluice_live (queue, lease_until) where state = 'claimed';
-- Claims walk this index from the front, one priority after the other.
create index sluice_live_claim on sluice_live (queue, priority, due_at)
    where state = 'queued' and blocked_by is null and in_tenant_queue = 0;
-- Claims of a tenant queue walk this index.
create index sluice_live_tenant_queue on sluice_live (queue, tenant, priority, due_at)
    where state = 'queued' and blocked_by is null and in_tenant_queue = 1;
-- The first due time of jobs in tenant queues.
create index sluice_live_tenant_queue_due on sluice_live (queue, due_at)
    where state = 'queued' and blocked_by is null and in_tenant_queue = 1;
-- Claims count a tenant's jobs in flight by it.
create index sluice_live_held on sluice_live (queue, tenant) where state in ('claimed', 'dispatched') and tenant <> '';
-- The unfinished jobs of an order. Of each order key, at most one job is let go (live_open): it is not blocked, or by its limit key only.
create index sluice_live_order on sluice_live (queue, order_key, seq) where order_key is not null;
create unique index sluice_live_open on sluice_live (queue, order_key)
    where order_key is not null and (blocked_by is null or parked);
create index sluice_live_engine on sluice_live (queue, run_of) where engine is not null;
-- Claims count the jobs in flight of a limit key by the first, and let in parked jobs along the second.
create index sluice_live_limit_key on sluice_live (limit_key, queue) where limit_key is not null and state in ('claimed', 'dispatched');
create index sluice_live_parked on sluice_live (queue, limit_key, priority, due_at) where parked;

-- History: one row for each finished life of a job.
create table sluice_done (
    seq           integer not null,                                      -- the job's number
    generation    integer not null,                                      -- the number of the job's life, from 1
    queue         text    not null,                                      -- the queue of the job
    tenant        text    not null default '',                           -- the tenant of the job; empty: none
    outcome       text    not null check (outcome in ('completed', 'dead', 'cancelled')), -- completed, dead or cancelled
    due_at        integer not null,                                      -- when the job was due last, in µs
    claimed_at    integer,                                               -- when the last holder claimed the job, in µs; null: nobody did
    finished_at   integer not null,                                      -- when the life ended, in µs
    attempts      integer not null,                                      -- failed attempts in the life
    releases      integer not null,                                      -- claims in the life that holders handed back uncounted
    recoveries    integer not null,                                      -- claims in the life whose holders were lost
    token         blob,                                                  -- the token of the last claim; null: nobody claimed the job
    holder        text,                                                  -- the id of the process that claimed the job last; null: nobody did
    ref           text,                                                  -- the name of the engine's run; null: there was none
    result        blob,                                                  -- the result, as JSON text; null: none; empty: upkeep removed it after keep_results_ms
    error         text,                                                  -- the text of the last failure; null: none
    requeued_at   integer,                                               -- when a person requeued the job into its next life, in µs; null: nobody did
    dispatched_at integer,                                               -- when the engine took the run, in µs; null: it did not
    primary key (seq, generation)
) without rowid;
-- The dead letters that wait for a person.
create index sluice_done_dead on sluice_done (queue, seq) where outcome = 'dead' and requeued_at is null;
-- Upkeep prunes history along it, and reads only rows that it deletes.
create index sluice_done_ended on sluice_done (queue, outcome, finished_at) where requeued_at is null;

-- How far upkeep has removed results of ended jobs from the history.
create table sluice_result_cursor (
    queue   text    not null, -- the queue of the jobs
    outcome text    not null, -- how the jobs ended: completed, dead or cancelled
    upto    integer not null, -- the results of all jobs that ended before are removed, in µs
    primary key (queue, outcome)
) without rowid;

-- Failed attempts, one row each.
create table sluice_attempt (
    seq        integer not null,           -- the job's number
    generation integer not null,           -- the number of the job's life, from 1
    attempt    integer not null,           -- the number of the attempt within the life, from 1
    claimed_at integer,                    -- when the holder claimed the job, in µs
    failed_at  integer not null,           -- when the attempt failed, in µs
    holder     text,                       -- the id of the process that ran the attempt
    error      text    not null,           -- the text of the failure
    stack      text,                       -- the stack of a panic; null: none
    primary key (seq, generation, attempt)
) without rowid;

-- Keys of jobs and the jobs that hold them. Only jobs with a key have a row.
create table sluice_job_key (
    queue  text    not null, -- the queue in which the key counts
    key    text    not null, -- the key
    job_id blob    not null, -- the id of the job that holds the key
    until  integer,          -- when the key becomes free, in µs; null: when the job ends
    primary key (queue, key)
) without rowid;
create index sluice_job_key_until on sluice_job_key (until) where until is not null;

-- Jobs that others wait for, or have waited for. A row goes with the first of its jobs that is deleted.
create table sluice_after (
    after_id blob    not null, -- the id of the job that must end first
    seq      integer not null, -- the seq of the job that waits
    rule     text    not null check (rule in ('cancel', 'run', 'wait')), -- the fate of the job that waits if the other fails
    primary key (after_id, seq)
) without rowid;
create index sluice_after_waiting on sluice_after (seq, after_id);

-- Queues whose jobs have, or had, jobs that wait for them. The end of a job looks for waiting jobs in these queues only.
create table sluice_awaited (
    queue text primary key -- the name of the queue
) without rowid;

-- Flow control. Rates, turns of tenants and jobs in flight. Claims write these tables.

-- The flow of each queue, and of each named limit, that has or had a rate.
create table sluice_flow (
    queue     text    primary key,        -- the name of the queue; of a limit, @ and its name
    tokens    real    not null,           -- tokens in the bucket of the rate, in jobs
    filled_at integer not null,           -- when a claim last filled the bucket, in µs
    virtual_start      real    not null default 0, -- the virtual start before which no tenant queue is active
    tenant    text    not null default '' -- the tenant before which, at that virtual start, no tenant queue is active
) without rowid;

-- Tenant queues: one row per queue and tenant. Claims serve active rows by virtual start. Others sleep until wake_at, or until a
-- trigger wakes them.
create table sluice_tenant_queue (
    queue       text    not null,           -- the name of the queue
    tenant      text    not null,           -- the tenant
    virtual_start        real    not null,           -- the position in the order of service, in jobs by weight
    jobs        integer not null default 0, -- bits 1 to 10: the priorities of which jobs may wait
    active      integer not null default 1, -- jobs may be claimable; false: the tenant queue sleeps
    at_limit    integer not null default 0, -- it sleeps until a job of the tenant ends
    wake_at     integer,                    -- when it wakes, in µs; null: no instant is set
    tokens      real    not null default 0, -- tokens in the bucket of the tenant's rate, in jobs
    filled_at   integer,                    -- when a claim last filled the bucket, in µs; null: never
    primary key (queue, tenant)
) without rowid;
-- Claims serve active tenant queues in this order.
create index sluice_tenant_queue_virtual_start on sluice_tenant_queue (queue, virtual_start, tenant) where active = 1;
create index sluice_tenant_queue_wake on sluice_tenant_queue (queue, wake_at) where active = 0 and wake_at is not null;
create index sluice_tenant_queue_at_limit on sluice_tenant_queue (queue) where at_limit = 1;

-- Limit keys, such as hosts, of limits that are per key, about which there is something to say. Upkeep deletes the others.
create table sluice_limit_key (
    name         text    not null,           -- the name of the limit
    key          text    not null,           -- the limit key
    tokens       real    not null default 0, -- tokens in the bucket of the key's rate, in jobs
    filled_at    integer,                    -- when a claim last filled the bucket, in µs; null: never
    closed_until integer,                    -- until when the key is closed, in µs; null: it is open
    idle_from    integer not null,           -- from when on the bucket is full and the key open, in µs
    primary key (name, key)
) without rowid;
create index sluice_limit_key_idle on sluice_limit_key (idle_from);

-- Limit keys of queues with parked jobs, which no claim walks over. A claim lets the jobs in when there is room.
create table sluice_limit_lane (
    queue   text    not null, -- the name of the queue
    key     text    not null, -- the limit key
    wake_at integer not null, -- when a claim is to look for room, in µs; 0: at once
    primary key (key, queue)
) without rowid;
create index sluice_limit_lane_wake on sluice_limit_lane (queue, wake_at);

-- Jobs that claims took from queues with a rate. Upkeep and holders report which of them began, and which never will.
create table sluice_permit (
    queue      text    not null,           -- the name of the queue; of a limit, @ and its name
    claimed_at integer not null,           -- when the claim was made, in µs
    token      blob    not null,           -- the token of the claim
    jobs       integer not null,           -- jobs that the claim took
    begun      integer not null default 0, -- jobs of the claim that began
    gone       integer not null default 0, -- jobs of the claim that will never begin
    check_at    integer not null,           -- when to check whether the holder still has the jobs, in µs
    primary key (queue, claimed_at, token)
) without rowid;

-- Starts of jobs in queues with a rate, by which windows are counted.
create table sluice_started (
    queue text    not null, -- the name of the queue; of a limit, @ and its name
    at    integer not null, -- the instant until which the jobs started, in µs
    jobs  integer not null, -- jobs that started since the row before
    primary key (queue, at)
) without rowid;

-- Engine and orphan runs. Runs of jobs that have ended.

-- Orphan runs: runs that were intended or open when their jobs ended. They go on until their engine says that they
-- ended.
create table sluice_orphan_run (
    job_id       blob    not null,                                       -- the id of the job
    queue        text    not null,                                       -- the queue of the job
    engine       text    not null,                                       -- the place of the run, by engine
    ref          text    not null,                                       -- the name of the run
    cancelled_at integer not null,                                       -- when the job ended, in µs
    tenant       text    not null default '',                            -- the tenant of the job; empty: none
    generation   integer not null default 0,                             -- the life of the job that the run belongs to
    claimed_at   integer,                                                -- when the dispatcher claimed the job, in µs; null: unknown
    started      integer not null default 0 check (started in (0, 1)),   -- the engine had the run; false: it may never start
    beside       integer not null default 0 check (beside in (0, 1)),    -- a person let the job run beside this run
    terminate    integer not null default 0 check (terminate in (0, 1)), -- a person asked upkeep to terminate the run
    limit_key    text,                                                   -- the limit key of the job when the run began; null: none
    cost         integer not null default 1,                             -- what the run takes of limits by cost: the cost of the job when it began
    primary key (job_id, ref)
) without rowid;
-- Orphan runs in the order in which their jobs ended.
create index sluice_orphan_run_order on sluice_orphan_run (queue, cancelled_at, job_id);
create index sluice_orphan_run_held on sluice_orphan_run (queue, tenant);
create index sluice_orphan_run_limit_key on sluice_orphan_run (queue, limit_key) where limit_key is not null;

-- Holds: queued jobs that no claim takes until somebody releases them. Such a job waits for itself. The row goes when
-- the job ends.
create table sluice_hold (
    job_id  blob    not null primary key, -- the id of the job
    queue   text    not null,             -- the queue of the job
    reason  text    not null,             -- why the job is held
    actor   text    not null,             -- the person or program that holds the job
    held_at integer not null,             -- when the hold began, in µs
    behind  integer                       -- the seq of the job that it waited for when the hold began; null: none
) without rowid;
create index sluice_hold_queue on sluice_hold (queue, job_id);

-- How far running jobs have come, by their handlers. A row counts while the job has the claim of claimed_at; upkeep deletes it
-- later.
create table sluice_progress (
    seq         integer primary key, -- the job's number
    claimed_at  integer not null,    -- when the holder that reported claimed the job, in µs
    fraction    real    not null,    -- the part that is done, from 0 to 1
    message     text    not null,    -- one line for people; empty: none
    reported_at integer not null     -- when the report was stored, in µs
) strict;

-- Processes. Heartbeats and leaders.

-- Processes that claim jobs or tend them, by their last heartbeat.
create table sluice_holder (
    id      text    primary key,                                -- host:pid:nonce of the process
    role    text    not null,                                   -- worker, dispatcher, upkeep or forwarder
    queues  text    not null default '[]',                      -- queues that the process claims from, as a JSON array
    slots   integer not null default 0,                         -- jobs that the process can run at once
    busy    integer not null default 0,                         -- jobs that the process runs now; of a dispatcher: claimed and not yet started
    version text    not null default '',                        -- the version of the program
    started integer not null,                                   -- when the process sent its first heartbeat, in µs
    seen    integer not null,                                   -- when the process sent its last heartbeat, in µs
    conditions text    not null default '',                        -- conditions that keep the process from its work, as JSON; empty: none
    counts  integer not null default 0 check (counts in (0, 1)), -- the process counts its work in the statistics
    protocol integer not null default 0,                        -- the protocol of the process's library; 0: the process does not say
    mode    text    not null default ''                         -- working, quiesced or stopping; empty: the process does not say
);

-- Instructions to processes. Of those that choose a process, the newest that has not ended counts. Heartbeats return it.
create table sluice_instruction (
    scope      text    not null check (scope in ('holder', 'version', 'all')),     -- holder, version or all
    name       text    not null,                                                   -- the id of the holder, or the version; empty: all
    wanted     text    not null check (wanted in ('work', 'quiesce', 'stop')),     -- work, quiesce or stop
    until      integer,                                                            -- when the instruction ends, in µs; null: when a newer one lifts it
    changed_at integer not null,                                                   -- when somebody gave it, in µs; no two have the same instant
    changed_by text    not null default '',                                        -- the actor
    reason     text    not null default '',                                        -- why the actor gave it
    version    integer not null default 1,                                         -- counts the instructions to the target, from 1
    act_id     blob    not null,                                                   -- the id of the act that gave it
    primary key (scope, name)
) strict, without rowid;

-- Leaders of tasks that one process does at a time: upkeep, and following the runs of each engine.
create table sluice_lead (
    task   text    primary key, -- the name of the task
    holder text    not null,    -- the id of the process that leads
    since  integer not null,    -- when the process began to lead, in µs
    until  integer not null     -- when the lead ends unless the process renews it, in µs
) strict, without rowid;

-- The steady clock of each start of the machine, which no change of the wall clock moves. Leases and rates go by it.
create table sluice_clock (
    boot        text    primary key check (length(boot) between 1 and 200), -- the id of the start of the machine
    steady_from integer not null                                         -- the wall clock at the steady clock's 0, as the first process saw it, in µs
);

-- Audit. Entries, and the hash chain over them. Programs only add rows.

-- Acts and notable moves: actor, object, time and reason. Upkeep deletes an entry only after a seal says so.
create table sluice_audit (
    seq        integer primary key autoincrement, -- the number of the entry
    at         integer not null,                  -- when the act was stored, in µs
    actor      text    not null,                  -- the person or program that acted
    object     text    not null,                  -- the kind of the object, such as job, queue, tenant or tier
    name       text    not null default '',       -- the name of the object; of a job: its queue
    event      text    not null,                  -- the name of the act or move
    job_id     blob,                              -- the id of the job; null: the object is no job
    generation integer not null default 0,        -- the life of the job; 0: the object is no job
    from_state text    not null default '',       -- the state of the job before; empty: none
    to_state   text    not null default '',       -- the state of the job after; empty: none
    reason     text    not null default '',       -- why the actor did it; empty: not given
    before     text,                              -- the object before the change, as JSON; null: none
    after      text,                              -- the object after the change, as JSON; null: none
    act_id     blob                               -- the id of the act, which all its entries share; null: none
);
create index sluice_audit_job on sluice_audit (job_id) where job_id is not null;
create index sluice_audit_object on sluice_audit (object, name) where object <> 'job';
create index sluice_audit_change on sluice_audit (object, name) where event = 'change';
create index sluice_audit_act on sluice_audit (act_id) where act_id is not null;

-- Seals, the hash chain over the audit. Each covers the entries after the seal before it. Package audit defines the
-- hashes.
create table sluice_audit_seal (
    no              integer primary key check (no > 0),            -- the number of the seal, from 1
    at              integer not null,                              -- when upkeep made the seal, in µs
    upto            integer not null,                              -- the last audit seq that the seal covers
    previous        blob    not null,                              -- the hash of the seal before
    notable_entries integer not null,                              -- entries of the level notable that the seal covers
    notable_hash    blob    not null,                              -- the hash of these entries
    notable_gone    integer not null,                              -- the seal up to which retention has deleted entries of the level notable; 0: none
    notable_keep_ms integer not null check (notable_keep_ms >= 0), -- ms that upkeep keeps entries of the level notable; 0: for ever
    full_entries    integer not null,                              -- entries of the level full that the seal covers
    full_hash       blob    not null,                              -- the hash of these entries
    full_gone       integer not null,                              -- the seal up to which retention has deleted entries of the level full; 0: none
    full_keep_ms    integer not null check (full_keep_ms >= 0),    -- ms that upkeep keeps entries of the level full; 0: for ever
    hash            blob    not null                               -- the hash of all fields above
);

-- Marks of the entries that a seal covers. By them, a check names the entry that somebody changed.
create table sluice_audit_batch (
    seal  integer not null,                                      -- the number of the seal
    level text    not null check (level in ('notable', 'full')), -- notable or full
    body  blob    not null,                                      -- a hash over all digests, then a mark of each entry
    primary key (seal, level)
);

-- Statistics and forecast. Counts by buckets of time, and jobs by the time at which they fall due.

-- Statistics of a queue in one bucket of time. Bucket n of a histogram ends at 0.1 ms * 2^(n/8).
create table sluice_stat (
    every_s      integer not null check (every_s in (10, 60, 3600)), -- seconds of the bucket: 10, 60 or 3,600
    at           integer not null,                                   -- when the bucket begins, in µs
    queue        text    not null,                                   -- the name of the queue
    enqueued     integer not null,                                   -- new jobs
    requeued     integer not null,                                   -- jobs that a person gave a new life
    claimed      integer not null,                                   -- claims of workers and dispatchers
    dispatched   integer not null,                                   -- runs that an engine took
    completed    integer not null,                                   -- jobs that completed
    dead         integer not null,                                   -- jobs that became dead letters
    cancelled    integer not null,                                   -- jobs that were cancelled
    uncertain    integer not null,                                   -- jobs that became uncertain
    failed       integer not null,                                   -- attempts that failed
    released     integer not null,                                   -- claims that holders handed back uncounted
    recovered    integer not null,                                   -- claims that upkeep took back after their lease
    start_failed integer not null,                                   -- runs that an engine did not start
    wait         text    not null,                                   -- histogram of the time from due to claim, as a JSON object with the count of each bucket
    run          text    not null,                                   -- histogram of the time from claim to end, of completed jobs
    total        text    not null,                                   -- histogram of the time from due to end, of completed jobs
    level        text    not null,                                   -- the worst look of upkeep at its ready jobs, as a JSON object; null as JSON: none
    tenants      text    not null,                                   -- the same figures of the largest tenants, as a JSON object by name
    primary key (every_s, at, queue)
);

-- Counts of one holder in 10 s, until upkeep adds them to table stat.
create table sluice_stat_part (
    at     integer not null,        -- when the 10 s begin, in µs
    queue  text    not null,        -- the name of the queue
    holder text    not null,        -- the id of the process
    body   text    not null,        -- figures of tenants by name, as JSON; the empty name has those of the whole queue
    primary key (at, queue, holder)
);

-- The last bucket that each holder sent, so that nothing counts twice.
create table sluice_stat_holder (
    holder text    primary key, -- the id of the process
    at     integer not null     -- when the bucket begins, in µs
) without rowid;

-- When upkeep last counted the jobs of a queue for the forecast. A queue without a row was never counted.
create table sluice_wave_count (
    queue      text    primary key, -- the name of the queue
    counted_at integer not null,    -- when upkeep counted, in µs
    took_us    integer not null     -- µs that the whole count took
) without rowid;

-- The forecast: jobs of a queue by the time at which they fall due.
create table sluice_wave (
    queue   text    not null,                                            -- the name of the queue
    part    text    not null check (part in ('due', 'in_flight', 'blocked', 'minute', 'hour', 'later')), -- due, in_flight, blocked, minute, hour or later
    at      integer not null,                                            -- when the minute or hour begins, in µs; of other parts: 0
    jobs    integer not null,                                            -- jobs of the part
    tenants text    not null default '{}',                               -- jobs of the largest tenants, as a JSON object by name; other tenants have the rest
    primary key (queue, part, at)
) without rowid;

-- Operations. Acts on all jobs that match a query.

-- Operations. Upkeep carries them out in batches, and writes the row for each batch.
create table sluice_operation (
    id         blob    primary key,        -- the id of the operation
    version    integer not null default 1, -- counts the writes of the row, from 1
    kind       text    not null,           -- the act, such as requeue or cancel
    state      text    not null,           -- the state of the operation
    created_at integer not null,           -- when a person began the operation, in µs
    ended_at   integer,                    -- when the operation ended, in µs; null: work is left
    body       text    not null            -- terms, counts and progress, as JSON
);
create index sluice_operation_open on sluice_operation (id) where ended_at is null;

-- Schedules. Recurring jobs.

-- Schedules. Upkeep fires each one that is due, and writes its row with the fire.
create table sluice_schedule (
    name       text    primary key,             -- the name of the schedule
    queue      text    not null,                -- the queue of the schedule's jobs
    version    integer not null default 1,      -- counts the changes of the definition, from 1
    next_at    integer,                         -- the next fire, in µs; null: there is none
    definition text    not null,                -- when the schedule fires and which job a fire makes, as JSON
    progress   text    not null,                -- counts and the last fires, as JSON
    changed_at integer not null,                -- when the last change was stored, in µs
    changed_by text    not null default '',     -- the person or program that made the last change
    reason     text    not null default ''      -- why the last change was made
);
create index sluice_schedule_next on sluice_schedule (next_at) where next_at is not null;
create index sluice_schedule_queue on sluice_schedule (queue, name);

-- Batches. Groups of jobs, their counts and callbacks.

-- Batches. An enqueue reads the row of its batch, and no end of a job does.
create table sluice_batch (
    id           blob    not null primary key, -- the id of the batch, a UUID
    name         text    not null default '',  -- a name for people; empty: none
    parent       blob,                         -- the id of the batch that it is in; null: none
    callbacks    text    not null default '',  -- the jobs that it enqueues on complete, on success and on the first death, as JSON; empty: none
    created_at   integer not null,             -- when it was opened, in µs
    created_by   text    not null default '',  -- the person or program that opened it
    closed_at    integer,                      -- since when no job can be added, in µs; null: it is open
    completed_at integer,                      -- when upkeep saw that all jobs had ended, in µs; null: not yet
    succeeded_at integer,                      -- when upkeep saw that all jobs had completed, in µs; null: not yet
    died_at      integer,                      -- when upkeep saw the first dead job, in µs; null: none yet
    paused       text    not null default ''   -- the reason for which it is paused; empty: it is not
) without rowid;
create index sluice_batch_in on sluice_batch (parent, id) where parent is not null;
create index sluice_batch_unfinished on sluice_batch (id) where completed_at is null;
create index sluice_batch_complete on sluice_batch (completed_at) where completed_at is not null;

-- Counts of batches, written with the jobs. The rows are narrow, because each transaction that ends jobs of a batch writes one.
create table sluice_batch_count (
    batch     blob    not null primary key, -- the id of the batch
    total     integer not null default 0,   -- jobs that were added
    completed integer not null default 0,   -- jobs that have completed
    dead      integer not null default 0,   -- jobs that are dead
    cancelled integer not null default 0,   -- jobs that were cancelled
    died      integer not null default 0 check (died in (0, 1)),   -- a job has died, in the batch or in one in it
    changed   integer not null default 0 check (changed in (0, 1)) -- upkeep is to look at the batch
) without rowid;
create index sluice_batch_changed on sluice_batch_count (batch) where changed = 1;

-- Tokens. Who may call the HTTP API.

-- Tokens of the HTTP API. A row has hashes of secrets, never a secret.
create table sluice_access_token (
    name       text    primary key,             -- the name of the token, which the audit shows
    hash       text    not null,                -- the SHA-256 of the secret, in hexadecimal digits
    old_hash   text,                            -- the SHA-256 of the secret before the last rotation; null: none
    terms      text    not null,                -- role, bounds and ends of the token, as JSON
    used_at    integer,                         -- when the token was used last, in µs, to about a minute; null: never
    version    integer not null default 1,      -- counts the changes of the row, from 1
    changed_at integer not null,                -- when the last change was stored, in µs
    changed_by text    not null default '',     -- the person or program that made the last change
    reason     text    not null default ''      -- why the last change was made
);
create unique index sluice_access_token_hash on sluice_access_token (hash);
create unique index sluice_access_token_old_hash on sluice_access_token (old_hash);

-- Notes on groups of dead letters. A note outlives the dead letters of its group.
create table sluice_dead_note (
    fingerprint text    primary key,            -- the fingerprint of the group
    note        text    not null default '',    -- what people have found out
    owner       text    not null default '',    -- the person or team that looks after the cause; empty: nobody
    resolved_at integer,                        -- when the cause was resolved, in µs; null: it is open
    version     integer not null default 1,     -- counts the changes of the row, from 1
    changed_at  integer not null,               -- when the last change was stored, in µs
    changed_by  text    not null default '',    -- the person or program that made the last change
    reason      text    not null default ''     -- why the last change was made
) strict, without rowid;

-- Alerts. Rules, their findings, silences and receivers. A notification is a job in the queue of its receiver.

-- Rules of alerts that people changed or added. Programs know the presets.
create table sluice_alert_rule (
    name       text    not null,                                         -- the name of the rule
    queue      text    not null default '',                              -- the one queue of the rule; empty: all that covers names
    metric     text    not null,                                         -- the name of the metric that the rule reads
    op         text    not null check (op in ('>', '<')),                -- the side of the threshold, > or <, on which the alert fires
    threshold  real    not null,                                         -- the threshold, in the unit of the metric
    rate_share real    not null default 0 check (rate_share between 0 and 1), -- share of the queue's rate, 0 to 1, that bounds the threshold; 0: no bound
    for_ms     integer not null default 0 check (for_ms >= 0),           -- ms that the condition must hold before the alert fires
    window_ms  integer not null default 0 check (window_ms >= 0),        -- ms that a metric of a period covers
    severity   text    not null check (severity in ('note', 'warning', 'error', 'critical')), -- note, warning, error or critical
    covers     text    not null default '',                              -- the queues that the rule covers, unless queue names one
    summary    text    not null default '',                              -- one sentence about the problem
    runbook    text    not null default '',                              -- steps for a person, one a line
    disabled   integer not null default 0 check (disabled in (0, 1)),    -- upkeep does not evaluate the rule
    version    integer not null default 1,                               -- counts the changes of the row, from 1
    changed_at integer not null,                                         -- when the last change was stored, in µs
    changed_by text    not null default '',                              -- the person or program that made the last change
    reason     text    not null default '',                              -- why the last change was made
    primary key (name, queue)
) without rowid;

-- The state of each rule in a queue. A rule has a row once its condition held.
create table sluice_alert (
    rule          text    not null,                                      -- the name of the rule
    queue         text    not null default '',                           -- the name of the queue; empty: the store
    state         text    not null check (state in ('inactive', 'pending', 'firing', 'silenced')), -- inactive, pending, firing or silenced
    since         integer not null,                                      -- when the alert came into this state, in µs
    pending_since integer,                                               -- since when the condition has held, in µs; null: it does not
    fired_at      integer,                                               -- when the alert fired last, in µs; null: never
    resolved_at   integer,                                               -- when the last firing ended, in µs; null: never
    notified      integer not null default 0 check (notified in (0, 1)),     -- receivers know that the alert fires
    value         real    not null default 0,                            -- the value at the last evaluation, in the unit of the metric
    threshold     real    not null default 0,                            -- the threshold at the last evaluation, in the unit of the metric
    severity      text    not null,                                      -- note, warning, error or critical
    evaluated_at     integer,                                               -- when upkeep last evaluated the rule, in µs; null: never
    detail        text    not null default '',                           -- more about the value; empty: none
    version       integer not null default 1,                            -- counts the writes of the row, from 1
    primary key (rule, queue)
) without rowid;

-- Silences: until they end, Sluice notifies nobody.
create table sluice_alert_silence (
    id         blob    primary key,         -- the id of the silence
    rule       text    not null default '', -- the silenced rule; empty: every rule
    queue      text    not null default '', -- the silenced queue; empty: every queue
    created_at integer not null,            -- when a person made the silence, in µs
    until      integer not null,            -- when the silence ends, in µs
    made_by    text    not null,            -- the person that made the silence
    reason     text    not null             -- why the person made it
) without rowid;

-- Receivers of alerts that processes with upkeep have registered.
create table sluice_alert_receiver (
    name  text    primary key, -- the name of the receiver
    queue text    not null,    -- the queue of the receiver, in which each notification is a job
    seen  integer not null     -- when a process last registered the receiver, in µs
) without rowid;

-- Followers. Statements of users that triggers run with each move of a job.

-- The followers of queues.
create table sluice_follower (
    name      text    primary key,         -- the name of the follower
    queue     text    not null,            -- the queue that it follows
    states    text    not null default '', -- states that it follows, separated by commas; empty: all
    statement text    not null,            -- the SQL statement that runs with each move
    made_at   integer not null             -- when somebody made the follower, in µs
) strict;

-- Views and triggers.

-- One row per job, whatever its state: select from it.
create view sluice_jobs as
select j.seq, j.id, j.queue, j.tenant, j.priority, j.key, j.labels, j.max_attempts, j.created_at,
       iif(coalesce(l.generation, d.generation) = 1, j.expires_at, null) as expires_at,
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
       d.finished_at, d.result, l.checkpoint, j.payload, j.order_key, j.after, j.after_failure, j.timeout_ms, j.batch_id, j.limit_key, j.cost, l.engine,
       iif(l.seq is null, d.dispatched_at, l.dispatched_at) as dispatched_at
from sluice_job j
left join sluice_live l on l.seq = j.seq
left join sluice_done d on l.seq is null and d.seq = j.seq
    and d.generation = (select max(generation) from sluice_done x where x.seq = j.seq);

-- Triggers wake tenant queues by inserts into the next views. A tenant queue that wakes takes a virtual start behind the
-- active ones: time without work, or at its limit, gives no credit.

-- The virtual start right behind the low-water mark of the flow. Rounding would lose a fixed step of very high virtual starts.
create view sluice_flow_behind as
select queue, max(virtual_start + 1.0 / 1048576, virtual_start * 1.0000000000000003) as behind from sluice_flow;

-- Work: a job came into a tenant queue. If it is due more than 1 s later, the tenant queue sleeps until then.
create view sluice_tenant_queue_work as select queue, tenant, 0 as priority, 0 as due_at from sluice_tenant_queue where false;
create trigger sluice_tenant_queue_work_in instead of insert on sluice_tenant_queue_work
begin
    insert into sluice_tenant_queue (queue, tenant, virtual_start, jobs, active, wake_at)
    select new.queue, new.tenant, coalesce((select f.behind from sluice_flow_behind f where f.queue = new.queue), 1.0 / 1048576), 1 << new.priority,
           later is null, later
    from (select iif(new.due_at > (julianday('now') - 2440587.5) * 86400000000 + 1000000, new.due_at, null) as later)
    where true
    on conflict (queue, tenant) do update
    set jobs = jobs | excluded.jobs,
        virtual_start = iif(active = 1 or at_limit = 1 or excluded.active = 0, virtual_start, max(virtual_start, excluded.virtual_start)),
        active = iif(at_limit = 1, 0, max(active, excluded.active)),
        wake_at = iif(at_limit = 1, wake_at, iif(max(active, excluded.active) = 1, null, min(coalesce(wake_at, excluded.wake_at), excluded.wake_at)))
    where active = 0 or jobs & excluded.jobs = 0;
end;

-- Room: a job of the tenant left flight.
create view sluice_tenant_queue_room as select queue, tenant from sluice_tenant_queue where false;
create trigger sluice_tenant_queue_room_in instead of insert on sluice_tenant_queue_room
begin
    update sluice_tenant_queue
    set active = 1, at_limit = 0, wake_at = null,
        virtual_start = max(virtual_start, coalesce((select f.behind from sluice_flow_behind f where f.queue = new.queue), 1.0 / 1048576))
    where queue = new.queue and tenant = new.tenant and at_limit = 1;
end;

-- Terms: limits have changed, of a queue or of all (''), of a tenant or of all ('').
create view sluice_tenant_queue_terms as select queue, tenant from sluice_tenant_queue where false;
create trigger sluice_tenant_queue_terms_in instead of insert on sluice_tenant_queue_terms
begin
    update sluice_tenant_queue
    set active = 1, at_limit = 0, wake_at = null,
        virtual_start = max(virtual_start, coalesce((select f.behind from sluice_flow_behind f where f.queue = sluice_tenant_queue.queue), 1.0 / 1048576))
    where active = 0 and (jobs <> 0 or at_limit = 1) and (new.queue = '' or queue = new.queue) and (new.tenant = '' or tenant = new.tenant);
end;

-- Moves of jobs tell tenant queues of work and room.
create trigger sluice_live_new after insert on sluice_live
when new.in_tenant_queue = 1 and new.blocked_by is null and new.state = 'queued'
begin
    insert into sluice_tenant_queue_work values (new.queue, new.tenant, new.priority, new.due_at);
end;

create trigger sluice_live_back after update of state, blocked_by, due_at, in_tenant_queue on sluice_live
when new.in_tenant_queue = 1 and new.blocked_by is null and new.state = 'queued'
begin
    insert into sluice_tenant_queue_work values (new.queue, new.tenant, new.priority, new.due_at);
end;

create trigger sluice_live_room after update of state on sluice_live
when old.tenant <> '' and old.state in ('claimed', 'dispatched') and new.state not in ('claimed', 'dispatched')
begin
    insert into sluice_tenant_queue_room values (old.queue, old.tenant);
end;

create trigger sluice_live_end after delete on sluice_live
when old.tenant <> '' and old.state in ('claimed', 'dispatched')
begin
    insert into sluice_tenant_queue_room values (old.queue, old.tenant);
end;

-- An orphan run was in flight. Its end makes room.
create trigger sluice_orphan_run_gone after delete on sluice_orphan_run
when old.tenant <> ''
begin
    insert into sluice_tenant_queue_room values (old.queue, old.tenant);
end;

-- Ends of jobs in flight make room for their limit keys, and changes of limits and settings may.
create trigger sluice_live_key_room after update of state on sluice_live
when old.limit_key is not null and old.state in ('claimed', 'dispatched') and new.state not in ('claimed', 'dispatched')
begin
    update sluice_limit_lane set wake_at = 0 where key = old.limit_key;
end;

-- A parked job that leaves, or is put off, held or edited, may have kept cheaper ones behind it. One that a claim lets in has not.
create trigger sluice_live_key_left after update of parked on sluice_live
when old.parked and not new.parked and new.blocked_by is not null
begin
    update sluice_limit_lane set wake_at = 0 where key = old.limit_key;
end;

-- A parked job that gets another place, key or cost is let go: when it is due, a claim judges it anew.
create trigger sluice_live_key_anew after update of due_at, priority, cost, limit_key on sluice_live
when old.parked and (new.due_at <> old.due_at or new.priority <> old.priority or new.cost <> old.cost or new.limit_key is not old.limit_key)
begin
    update sluice_live set parked = 0, blocked_by = null where seq = new.seq and parked;
    update sluice_limit_lane set wake_at = 0 where key = old.limit_key;
end;

create trigger sluice_live_key_end after delete on sluice_live
when old.limit_key is not null and (old.state in ('claimed', 'dispatched') or old.parked)
begin
    update sluice_limit_lane set wake_at = 0 where key = old.limit_key;
end;

create trigger sluice_orphan_run_key_end after delete on sluice_orphan_run
when old.limit_key is not null
begin
    update sluice_limit_lane set wake_at = 0 where key = old.limit_key;
end;

create trigger sluice_named_limit_changed after update on sluice_named_limit
begin
    update sluice_limit_lane set wake_at = 0;
    -- A bucket fills by the new figures. It is full at the latest when all of it could have come since now.
    update sluice_limit_key
    set idle_from = max(idle_from, cast((julianday('now') - 2440587.5) * 86400000000 + max(new.burst, new.rate * new.rate_per_ms / 1000.0, 1) / new.rate * 1000000 as integer))
    where name = new.name and tokens is not null and new.rate > 0 and (new.rate <> old.rate or new.burst <> old.burst);
end;

create trigger sluice_queue_limits_changed after update of limits on sluice_queue
when new.limits <> old.limits
begin
    update sluice_limit_lane set wake_at = 0 where queue = new.name;
    update sluice_limit_lane set wake_at = 0 where queue in (
        select q.name
        from sluice_named_limit n
        join sluice_queue q on q.limits <> '' and instr(',' || q.limits || ',', ',' || n.name || ',') > 0
        where n.per_key and instr(',' || old.limits || ',', ',' || n.name || ',') > 0
    );
end;

-- Changed limits and settings count at once.
create trigger sluice_tenant_limit_new after insert on sluice_tenant_limit
begin
    insert into sluice_tenant_queue_terms values (new.queue, new.tenant);
end;

create trigger sluice_tenant_limit_changed after update on sluice_tenant_limit
begin
    insert into sluice_tenant_queue_terms values (new.queue, new.tenant);
end;

create trigger sluice_tenant_limit_gone after delete on sluice_tenant_limit
begin
    insert into sluice_tenant_queue_terms values (old.queue, old.tenant);
end;

create trigger sluice_tenant_new after insert on sluice_tenant
begin
    insert into sluice_tenant_queue_terms values ('', new.name);
end;

create trigger sluice_tenant_changed after update of tier on sluice_tenant
begin
    insert into sluice_tenant_queue_terms values ('', new.name);
end;

create trigger sluice_tenant_gone after delete on sluice_tenant
begin
    insert into sluice_tenant_queue_terms values ('', old.name);
end;

create trigger sluice_queue_changed after update of tenant_concurrency, tenant_rate, tenant_burst on sluice_queue
begin
    insert into sluice_tenant_queue_terms values (new.name, '');
end;

-- Entries up to which retention has deleted each level, by the last seal. The level full has entries that Sluice
-- writes only because the setting audit of a queue is full.
create view sluice_audit_gone as
select coalesce((select s.upto from sluice_audit_seal s where s.no = l.notable_gone), 0) as notable,
       coalesce((select s.upto from sluice_audit_seal s where s.no = l.full_gone), 0) as full,
       l.notable_gone, l.full_gone
from (select no, notable_gone, full_gone from sluice_audit_seal order by no desc limit 1) l;

-- The audit only grows. Retention deletes entries that a seal says are gone.
create trigger sluice_audit_stays before update on sluice_audit
begin
    select raise(abort, 'sluice_audit: entries of the audit are only added');
end;

create trigger sluice_audit_seal_stays before update on sluice_audit_seal
begin
    select raise(abort, 'sluice_audit_seal: seals of the audit are only added');
end;

create trigger sluice_audit_batch_stays before update on sluice_audit_batch
begin
    select raise(abort, 'sluice_audit_batch: batches of the audit are only added');
end;

create trigger sluice_audit_goes before delete on sluice_audit
when old.seq > coalesce((
    select case when old.object = 'job' and old.event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release') then g.full else g.notable end
    from sluice_audit_gone g
), 0)
begin
    select raise(abort, 'sluice_audit: entries of the audit are only added; retention deletes those that a seal says are gone');
end;

create trigger sluice_audit_batch_goes before delete on sluice_audit_batch
when old.seal > coalesce((select case old.level when 'full' then g.full_gone else g.notable_gone end from sluice_audit_gone g), 0)
begin
    select raise(abort, 'sluice_audit_batch: batches of the audit are only added; retention deletes those that a seal says are gone');
end;

create trigger sluice_audit_seal_goes before delete on sluice_audit_seal
when old.no >= coalesce((select min(g.notable_gone, g.full_gone) from sluice_audit_gone g), 0)
begin
    select raise(abort, 'sluice_audit_seal: seals of the audit are only added; retention deletes those that no entry needs');
end;

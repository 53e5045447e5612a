-- 0013 Alerts: rules, what they have found, silences, and what receivers are still to be told.
-- locks: audit, for a moment.
-- works with programs from: 8

-- Programs know what the audit tells of; more kinds come with them.
alter table sluice.audit drop constraint audit_object_check;

-- What somebody said of a rule, for all queues ('') or one. Presets are in the programs.
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
    says       text             not null default '',
    runbook    text             not null default '',
    disabled   boolean          not null default false,
    version    bigint           not null default 1,
    changed_at timestamptz      not null default now(),
    changed_by text             not null default '',
    reason     text             not null default '',
    primary key (name, queue)
);

-- What is known of a rule in a queue, or in the store (''). Only what was pending once has a row.
create table sluice.alert (
    rule          text             not null,
    queue         text             not null default '',
    state         text             not null check (state in ('inactive', 'pending', 'firing', 'silenced')),
    since         timestamptz      not null,
    pending_since timestamptz,
    fired_at      timestamptz,
    resolved_at   timestamptz,
    told          boolean          not null default false, -- receivers know that it fires
    value         double precision not null default 0,
    threshold     double precision not null default 0,
    severity      text             not null,
    looked_at     timestamptz,
    detail        text             not null default '',
    version       bigint           not null default 1,
    primary key (rule, queue)
);

-- For how long nobody is to be told. '' is every rule, every queue.
create table sluice.alert_silence (
    id         uuid        primary key,
    rule       text        not null default '',
    queue      text        not null default '',
    created_at timestamptz not null default now(),
    until      timestamptz not null,
    made_by    text        not null,
    reason     text        not null
);

-- Whom processes with upkeep tell.
create table sluice.alert_receiver (
    name text        primary key,
    seen timestamptz not null default now()
);

-- What a receiver was not told yet. The row is deleted when it was.
create table sluice.alert_notice (
    seq        bigint      generated always as identity primary key,
    receiver   text        not null,
    rule       text        not null,
    queue      text        not null,
    message    jsonb       not null,
    created_at timestamptz not null default now(),
    due_at     timestamptz not null default now(),
    attempts   integer     not null default 0,
    error      text        not null default ''
);
create index alert_notice_receiver on sluice.alert_notice (receiver, seq);

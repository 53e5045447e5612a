-- 0013 Alerts: rules, what they have found, silences, and what receivers are still to be told.
-- works with programs from: 8

-- Programs know what the audit tells of; more kinds come with them. The check is only a text in the schema: taking it
-- out changes nothing of what is stored, and a copy of the table would take long.
pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, ' check (object in (''job'', ''queue'', ''tenant'', ''tier''))', '')
where type = 'table' and name = 'sluice_audit';
pragma writable_schema = reset;

-- What somebody said of a rule, for all queues ('') or one. Presets are in the programs.
create table sluice_alert_rule (
    name       text    not null,
    queue      text    not null default '',
    metric     text    not null,
    op         text    not null check (op in ('>', '<')),
    threshold  real    not null,
    rate_share real    not null default 0 check (rate_share between 0 and 1),
    for_ms     integer not null default 0 check (for_ms >= 0),
    window_ms  integer not null default 0 check (window_ms >= 0),
    severity   text    not null check (severity in ('note', 'warning', 'error', 'critical')),
    covers     text    not null default '',
    says       text    not null default '',
    runbook    text    not null default '',
    disabled   integer not null default 0 check (disabled in (0, 1)),
    version    integer not null default 1,
    changed_at integer not null,
    changed_by text    not null default '',
    reason     text    not null default '',
    primary key (name, queue)
) without rowid;

-- What is known of a rule in a queue, or in the store (''). Only what was pending once has a row.
create table sluice_alert (
    rule          text    not null,
    queue         text    not null default '',
    state         text    not null check (state in ('inactive', 'pending', 'firing', 'silenced')),
    since         integer not null,
    pending_since integer,
    fired_at      integer,
    resolved_at   integer,
    told          integer not null default 0 check (told in (0, 1)), -- receivers know that it fires
    value         real    not null default 0,
    threshold     real    not null default 0,
    severity      text    not null,
    looked_at     integer,
    detail        text    not null default '',
    version       integer not null default 1,
    primary key (rule, queue)
) without rowid;

-- For how long nobody is to be told. '' is every rule, every queue.
create table sluice_alert_silence (
    id         blob    primary key,
    rule       text    not null default '',
    queue      text    not null default '',
    created_at integer not null,
    until      integer not null,
    made_by    text    not null,
    reason     text    not null
) without rowid;

-- Whom processes with upkeep tell.
create table sluice_alert_receiver (
    name text    primary key,
    seen integer not null
) without rowid;

-- What a receiver was not told yet. The row is deleted when it was.
create table sluice_alert_notice (
    seq        integer primary key autoincrement,
    receiver   text    not null,
    rule       text    not null,
    queue      text    not null,
    message    text    not null,
    created_at integer not null,
    due_at     integer not null,
    attempts   integer not null default 0,
    error      text    not null default ''
);
create index sluice_alert_notice_receiver on sluice_alert_notice (receiver, seq);

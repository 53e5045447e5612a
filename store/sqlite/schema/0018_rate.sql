-- 0018 A rate has a window: in none of its length do more jobs start than it allows.
-- works with programs from: 8
-- Older programs do not count the jobs that they start: while they claim, a rate holds only on average.

alter table sluice_queue add column rate_per_ms integer not null default 1000 check (rate_per_ms between 1 and 315360000000);
alter table sluice_queue add column tenant_rate_per_ms integer not null default 1000 check (tenant_rate_per_ms between 1 and 315360000000);
alter table sluice_tenant_limit add column rate_per_ms integer default 1000 check (rate_per_ms between 1 and 315360000000);

-- What claims of queues with a rate took, until their holders have told that all of it began, or never will.
create table sluice_permit (
    queue      text    not null,
    claimed_at integer not null,
    token      blob    not null,
    jobs       integer not null,
    begun      integer not null default 0, -- so many of them have
    gone       integer not null default 0, -- so many never will
    look_at    integer not null,           -- when to look whether the holder still has the jobs
    primary key (queue, claimed_at, token)
) without rowid;

-- How many jobs of a queue with a rate started until an instant, since the one before.
create table sluice_started (
    queue text    not null,
    at    integer not null,
    jobs  integer not null,
    primary key (queue, at)
) without rowid;

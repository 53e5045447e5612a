-- 0018 A rate has a window: in none of its length do more jobs start than it allows.
-- locks: queue, tenant_limit and flow, for a moment.
-- works with programs from: 8
-- Older programs do not count the jobs that they start: while they claim, a rate holds only on average.

alter table sluice.queue
    add column rate_per_ms        bigint not null default 1000 check (rate_per_ms between 1 and 315360000000),
    add column tenant_rate_per_ms bigint not null default 1000 check (tenant_rate_per_ms between 1 and 315360000000);
alter table sluice.tenant_limit
    add column rate_per_ms bigint default 1000 check (rate_per_ms between 1 and 315360000000);

-- What claims of queues with a rate took, until their holders have told that all of it began, or never will. Only those
-- that hold the lock of the queue's flow write it. An old transaction keeps the index entries of all claims since; they
-- lie before permits_from.
create table sluice.permit (
    queue      text        not null,
    claimed_at timestamptz not null,
    token      uuid        not null,
    jobs       bigint      not null,
    begun      bigint      not null default 0, -- so many of them have
    gone       bigint      not null default 0, -- so many never will
    look_at    timestamptz not null,           -- when to look whether the holder still has the jobs
    primary key (queue, claimed_at, token)
);

-- How many jobs of a queue with a rate started until an instant, since the one before.
create table sluice.started (
    queue text        not null,
    at    timestamptz not null,
    jobs  bigint      not null,
    primary key (queue, at)
) with (fillfactor = 50);

alter table sluice.flow
    add column permits_from timestamptz,                   -- no permit is of a claim before; null: that is not known
    add column clock_ahead_us bigint not null default 0;   -- by how much the server's clock was found to be set forward

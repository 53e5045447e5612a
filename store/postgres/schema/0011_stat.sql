-- 0011 What happened in queues, by slots of time: statistics that nobody has to count jobs for.
-- locks: none on tables that exist.
-- works with programs from: 8

-- What happened in a queue in a slot of every_s seconds that begins at. The histograms are JSON objects with the count
-- of each bucket; bucket n ends at 0.1 ms * 2^(n/8). Wait is from due to claim; run from claim to end, and total from due
-- to end, of jobs that completed. Tenants has the same of the largest tenants, by name.
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
    tenants      text        not null,
    primary key (every_s, at, queue)
) with (fillfactor = 70);

-- What one holder counted in ten seconds, until upkeep adds it to the above. Body has the figures of tenants, by name,
-- and those of the whole queue, by the empty name.
create table sluice.stat_part (
    at     timestamptz not null,
    queue  text        not null,
    holder text        not null,
    body   text        not null,
    primary key (at, queue, holder)
);
-- It is read once, a minute later: to compress it costs more than it saves.
alter table sluice.stat_part alter column body set storage external;

-- The last slot that a holder added, so that what it sends twice is not counted twice.
create table sluice.stat_holder (
    holder text        primary key,
    at     timestamptz not null
) with (fillfactor = 70);

-- Whoever adds up has locked the one row.
create table sluice.stat_fold (
    one boolean     primary key default true check (one),
    at  timestamptz not null
);

-- 0011 What happened in queues, by slots of time: statistics that nobody has to count jobs for.
-- works with programs from: 8

-- What happened in a queue in a slot of every_s seconds that begins at. The histograms are JSON objects with the count
-- of each bucket; bucket n ends at 0.1 ms * 2^(n/8). Wait is from due to claim; run from claim to end, and total from due
-- to end, of jobs that completed. Tenants has the same of the largest tenants, by name.
create table sluice_stat (
    every_s      integer not null check (every_s in (10, 60, 3600)),
    at           integer not null,
    queue        text    not null,
    enqueued     integer not null,
    requeued     integer not null,
    claimed      integer not null,
    dispatched   integer not null,
    completed    integer not null,
    dead         integer not null,
    cancelled    integer not null,
    uncertain    integer not null,
    failed       integer not null,
    released     integer not null,
    recovered    integer not null,
    start_failed integer not null,
    wait         text    not null,
    run          text    not null,
    total        text    not null,
    tenants      text    not null,
    primary key (every_s, at, queue)
);

-- What one holder counted in ten seconds, until upkeep adds it to the above. Body has the figures of tenants, by name,
-- and those of the whole queue, by the empty name.
create table sluice_stat_part (
    at     integer not null,
    queue  text    not null,
    holder text    not null,
    body   text    not null,
    primary key (at, queue, holder)
);

-- The last slot that a holder added, so that what it sends twice is not counted twice.
create table sluice_stat_holder (
    holder text    primary key,
    at     integer not null
) without rowid;

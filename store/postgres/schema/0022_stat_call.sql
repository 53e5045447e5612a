-- 0022 What SQL functions did, for the statistics, and which processes count.
-- locks: holder, for a moment.
-- works with programs from: 8
-- Older programs do not say that they count, and add up nothing of SQL functions.

-- One row for each call of a function that moved jobs, queue and tenant, until upkeep adds it up. It is only added to, in the
-- transaction of the move: no two calls wait for each other, and what is rolled back is not counted. Times are in
-- microseconds, one for each job: waits from due to claim, runs from claim to end and totals from due to end.
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

-- Whether what the process does stands in the statistics.
alter table sluice.holder add column counts boolean not null default false;

-- 0012 Operations: acts on all jobs that match a query, which upkeep carries out at a pace.
-- locks: none on tables that exist.
-- works with programs from: 8

-- One row per operation. The body has its terms, its counts and how far it has come, as JSON; the other columns are what it
-- is found by. It is written for each batch of jobs.
create table sluice.operation (
    id         uuid        primary key,
    version    bigint      not null default 1,
    kind       text        not null,
    state      text        not null,
    created_at timestamptz not null default now(),
    ended_at   timestamptz,
    body       text        not null
);
create index operation_open on sluice.operation (id) where ended_at is null;

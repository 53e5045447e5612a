-- 0021 Which new queues are made: how many there may be, and whether somebody must declare them first.
-- works with programs from: 8
-- Older programs make every queue that a job names, and do not look here.

-- One row, or none: then the defaults count.
create table sluice.queue_policy (
    id         bigint      primary key default 1 check (id = 1),
    max_queues bigint      not null default 10000 check (max_queues between 1 and 1000000),
    declared   boolean     not null default false, -- a job makes no queue
    version    bigint      not null default 1,
    changed_at timestamptz not null default now(),
    changed_by text        not null default '',
    reason     text        not null default ''
);

-- 0021 Which new queues are made: how many there may be, and whether somebody must declare them first.
-- works with programs from: 8
-- Older programs make every queue that a job names, and do not look here.

-- One row, or none: then the defaults count.
create table sluice_queue_policy (
    id         integer primary key default 1 check (id = 1),
    max_queues integer not null default 10000 check (max_queues between 1 and 1000000),
    declared   integer not null default 0 check (declared in (0, 1)), -- a job makes no queue
    version    integer not null default 1,
    changed_at integer not null,
    changed_by text    not null default '',
    reason     text    not null default ''
) strict;

-- 0006 What falls due, counted now and then, so that looking ahead reads a few rows.
-- locks: none on tables that exist.
-- works with programs from: 3

-- When a queue was last counted, and how long the whole count took. A queue that has no row was never counted.
create table sluice.wave_count (
    queue      text             primary key,
    counted_at timestamptz      not null,
    took_ms    double precision not null
);

-- What was counted: jobs that are due, in_flight, blocked, due in a minute or an hour, or later. At is the beginning
-- of the minute or hour, and that of 1970 for the other parts. Tenants is a JSON object with the jobs of the queue's
-- largest tenants; what it lacks belongs to others.
create table sluice.wave (
    queue   text        not null,
    part    text        not null check (part in ('due', 'in_flight', 'blocked', 'minute', 'hour', 'later')),
    at      timestamptz not null,
    jobs    bigint      not null,
    tenants text        not null default '{}',
    primary key (queue, part, at)
) with (fillfactor = 70);

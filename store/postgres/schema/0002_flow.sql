-- 0002 Limits of a queue: how many jobs start per time, how many are in flight, how long it is paused.
-- locks: queue and live for a moment; live for as long as its new index takes.
-- works with programs from: 1
-- Those of schema 1 do not keep the limits.

alter table sluice.queue
    add column rate            double precision not null default 0 check (rate between 0 and 1000000),
    add column burst           bigint           not null default 0 check (burst between 0 and 1000000),
    add column in_flight_limit bigint           not null default 0 check (in_flight_limit between 0 and 1000000),
    add column paused_until    timestamptz,
    add column ageing          double precision not null default 0.05 check (ageing between 0 and 1);

-- Only queues with limits have a row. Its lock lets one claim of the queue after the other through,
-- so that what a claim counts is still true when it commits.
create table sluice.flow (
    queue     text             primary key,
    tokens    double precision not null default 0,
    filled_at timestamptz -- null: the tokens were never filled
) with (fillfactor = 20);

-- In flight is counted by queue, and leases are looked at by queue too.
create index live_claimed on sluice.live (queue, lease_until) where state = 'claimed';
drop index sluice.live_lease;

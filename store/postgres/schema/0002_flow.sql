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
    queue         text             primary key,
    tokens        double precision not null default 0,
    filled_at     timestamptz, -- null: the tokens were never filled
    claimed_at    timestamptz, -- of the last claim; each is later than the one before, whatever the clock does
    counted_from  timestamptz, -- what is in flight was not claimed before; null: that is not known
    version       bigint       not null default 0, -- of the queue's settings, when it was last claimed from
    counted_since timestamptz  -- when this version was first seen
) with (fillfactor = 20);

-- In flight is counted in the order of claims: what an old transaction keeps of earlier ones lies before
-- counted_from. Upkeep looks at the leases of a queue's claims by the same index.
create index live_claimed on sluice.live (queue, claimed_at) where state = 'claimed';
drop index sluice.live_lease;
create index live_gone on sluice.live (queue, state, claimed_at) where state in ('dispatched', 'uncertain');
drop index sluice.live_away;
alter index sluice.live_gone rename to live_away;

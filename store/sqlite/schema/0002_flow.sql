-- 0002 Limits of a queue: how many jobs start per time, how many are in flight, how long it is paused.
-- works with programs from: 1
-- Those of schema 1 do not keep the limits.

alter table sluice_queue add column rate real not null default 0 check (rate between 0 and 1000000);
alter table sluice_queue add column burst integer not null default 0 check (burst between 0 and 1000000);
alter table sluice_queue add column in_flight_limit integer not null default 0 check (in_flight_limit between 0 and 1000000);
alter table sluice_queue add column paused_until integer;
alter table sluice_queue add column ageing real not null default 0.05 check (ageing between 0 and 1);

-- Only queues that have or had a rate have a row.
create table sluice_flow (
    queue     text primary key,
    tokens    real    not null,
    filled_at integer not null
) without rowid;

-- In flight is counted by queue, and leases are looked at by queue too.
create index sluice_live_claimed on sluice_live (queue, lease_until) where state = 'claimed';
drop index sluice_live_lease;

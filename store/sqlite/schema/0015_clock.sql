-- 0015 Leases by the machine's steady clock, which no step of the wall clock moves.
-- works with programs from: 8

-- For each start of the machine: what the wall clock said when the steady clock was at 0, as the first process that
-- opened the file has seen it. All processes of that start add the two, and so agree on leases.
create table sluice_clock (
    boot        text    primary key check (length(boot) between 1 and 200),
    steady_from integer not null
);

-- 0017 Who does what one process does at a time: upkeep, and following the runs at each engine.
-- works with programs from: 8

create table sluice_lead (
    task   text    primary key,
    holder text    not null,
    since  integer not null,
    until  integer not null
) strict, without rowid;

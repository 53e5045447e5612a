-- Stores the state of a queue after a claim: the tokens of its rate, the instant from which to count jobs in flight,
-- and the turns of its tenants.
-- $1 text queue   $2 double precision tokens   $3 timestamptz filled_at   $4 timestamptz claimed_at
-- $5 timestamptz counted_from   $6 bigint version   $7 timestamptz counted_since
-- $8 double precision virtual_start   $9 text tenant   $10 timestamptz wakes_from   $11 timestamptz fair_since
-- $12 timestamptz permits_from   $13 bigint clock_ahead_us
update sluice.flow
set tokens = $2::double precision, filled_at = $3::timestamptz, claimed_at = $4::timestamptz,
    counted_from = $5::timestamptz, version = $6::bigint, counted_since = $7::timestamptz,
    virtual_start = $8::double precision, tenant = $9::text, wakes_from = $10::timestamptz, fair_since = $11::timestamptz,
    permits_from = $12::timestamptz, clock_ahead_us = $13::bigint
where queue = $1::text

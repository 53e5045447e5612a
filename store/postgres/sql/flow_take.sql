-- Keeps what a claim leaves: the tokens of its queue's rate, and from where what is in flight is to be counted.
-- $1 text queue   $2 double precision tokens   $3 timestamptz filled_at   $4 timestamptz claimed_at
-- $5 timestamptz counted_from   $6 bigint version   $7 timestamptz counted_since
update sluice.flow
set tokens = $2::double precision, filled_at = $3::timestamptz, claimed_at = $4::timestamptz,
    counted_from = $5::timestamptz, version = $6::bigint, counted_since = $7::timestamptz
where queue = $1::text

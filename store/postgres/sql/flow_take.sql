-- Keeps the tokens that a claim has left of its queue's rate.
-- $1 text queue   $2 double precision tokens   $3 timestamptz filled_at
update sluice.flow set tokens = $2::double precision, filled_at = $3::timestamptz where queue = $1::text

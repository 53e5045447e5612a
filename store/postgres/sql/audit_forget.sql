-- Deletes the entries of a level after one seal up to another, their batches, and the seals that no entry needs any more.
-- $1 text level   $2 bigint behind seal   $3 bigint up to seal
select sluice._forget_audit($1::text, $2::bigint, $3::bigint)

-- Deletes entries of a level, and what only they needed: those behind one seal, up to another.
-- $1 text level   $2 bigint behind seal   $3 bigint up to seal
select sluice._forget_audit($1::text, $2::bigint, $3::bigint)

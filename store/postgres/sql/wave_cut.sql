-- Finds where a slice of the unfinished jobs ends. No row: the rest fits into one slice.
-- $1 uuid after   $2 bigint the jobs of a slice
select id from sluice.live where id > $1::uuid order by id offset $2::bigint limit 1

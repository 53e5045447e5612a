-- Where a slice of the unfinished jobs ends. None: the rest is no more than a slice.
-- $1 uuid after   $2 bigint how many to a slice
select id from sluice.live where id > $1::uuid order by id offset $2::bigint limit 1

-- Lists the starts of a queue with a rate since an instant: each instant and its number of jobs.
-- $1 text queue   $2 timestamptz since
select at, jobs from sluice.started where queue = $1::text and at > $2::timestamptz order by at

-- How many jobs of a queue started since an instant, in the parts of its rate's window.
-- $1 text queue   $2 timestamptz since
select at, jobs from sluice.started where queue = $1::text and at > $2::timestamptz order by at

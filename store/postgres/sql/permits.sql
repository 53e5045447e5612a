-- Lists the permits of a queue with a rate: how many jobs each claim took, and how many have begun or never will.
-- $1 text queue   $2 timestamptz permits_from (null: from the front)
select claimed_at, token, jobs, begun, gone, check_at
from sluice.permit
where queue = $1::text and claimed_at >= coalesce($2::timestamptz, '-infinity')
order by claimed_at

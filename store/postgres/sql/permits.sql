-- What claims of a queue with a rate took and may not have begun yet.
-- $1 text queue   $2 timestamptz permits_from (null: from the front)
select claimed_at, token, jobs, begun, gone, check_at
from sluice.permit
where queue = $1::text and claimed_at >= coalesce($2::timestamptz, '-infinity')
order by claimed_at

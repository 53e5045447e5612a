-- Lists the permits of a queue with a rate, like permits.sql but without tokens, which readers may not select.
-- $1 text queue   $2 timestamptz permits_from (null: from the front)
select claimed_at, '00000000-0000-0000-0000-000000000000'::uuid, jobs, begun, gone, check_at
from sluice.permit
where queue = $1::text and claimed_at >= coalesce($2::timestamptz, '-infinity')
order by claimed_at

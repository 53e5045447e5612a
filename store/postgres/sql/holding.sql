-- Lists some jobs of a tenant in a queue that are in flight, or whose runs may be open. The job in flight the longest
-- comes first.
-- $1 text queue   $2 text tenant   $3 integer limit
select id
from (
    (select id, claimed_at
     from sluice.live
     where queue = $1::text and tenant = $2::text and tenant <> '' and state in ('claimed', 'dispatched')
     order by claimed_at, id
     limit $3::integer)
    union all
    (select job_id, claimed_at
     from sluice.orphan_run
     where queue = $1::text and tenant = $2::text and tenant <> ''
     limit $3::integer)
) h
order by claimed_at, id
limit $3::integer

-- Counts the jobs in flight in a queue and its orphan runs, each up to a limit, and returns the earliest claim of these
-- jobs. Meanwhile the lock on the queue's row in flow keeps other claims out. Each state is a walk along its index from
-- counted_from on.
-- $1 text queue   $2 integer limit   $3 timestamptz counted_from (null: from the front)
select count(*), min(claimed_at)
from (
    (select claimed_at from sluice.live
     where queue = $1::text and state = 'claimed' and claimed_at >= coalesce($3::timestamptz, '-infinity')
     order by claimed_at limit $2::integer)
    union all
    (select claimed_at from sluice.live
     where queue = $1::text and state = 'dispatched' and claimed_at >= coalesce($3::timestamptz, '-infinity')
     order by claimed_at limit $2::integer)
    union all
    (select null from sluice.orphan_run
     where queue = $1::text
     order by tenant limit $2::integer)
) held

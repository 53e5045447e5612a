-- Counts what is in flight in a queue, up to a limit, and the runs of ended jobs that may be open, while the lock on its flow keeps others from claiming; and tells
-- when the first of what is live was claimed. Each state is a walk along its index, from where something may be.
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

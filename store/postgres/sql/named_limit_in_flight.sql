-- Counts what is in flight in the queues that share a limit, up to a figure, while the lock on the limit's flow keeps
-- others from claiming. Each queue and state is a walk along its index; see in_flight.sql.
-- $1 text name of the limit   $2 integer figure
select count(*)
from (
    select
    from sluice.queue q
    cross join lateral (
        (select from sluice.live where queue = q.name and state = 'claimed' order by claimed_at limit $2::integer)
        union all
        (select from sluice.live where queue = q.name and state = 'dispatched' order by claimed_at limit $2::integer)
        union all
        (select from sluice.orphan_run where queue = q.name order by tenant limit $2::integer)
    ) held
    where q.limits <> '' and $1::text = any (string_to_array(q.limits, ','))
    limit $2::integer
) counted

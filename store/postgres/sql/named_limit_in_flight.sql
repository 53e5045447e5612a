-- Counts the jobs in flight in the queues that share a limit, or their costs, and reads at most a number of jobs.
-- Meanwhile the lock on the limit's row in flow keeps other claims out. Each queue and state is a walk along its index;
-- see in_flight.sql.
-- $1 text name of the limit   $2 integer the most jobs to read
select coalesce(sum(case when n.by_cost then counted.cost else 1 end), 0)
from (
    select held.cost
    from sluice.queue q
    cross join lateral (
        (select cost from sluice.live where queue = q.name and state = 'claimed' order by claimed_at limit $2::integer)
        union all
        (select cost from sluice.live where queue = q.name and state = 'dispatched' order by claimed_at limit $2::integer)
        union all
        (select cost from sluice.orphan_run where queue = q.name order by tenant limit $2::integer)
    ) held
    where q.limits <> '' and $1::text = any (string_to_array(q.limits, ','))
    limit $2::integer
) counted
left join sluice.named_limit n on n.name = $1::text

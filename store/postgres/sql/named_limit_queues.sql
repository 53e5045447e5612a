-- Lists the queues and groups that share a limit, by name, along the index queue_limits.
-- $1 text name of the limit
select q.name
from sluice.queue q
where q.limits <> '' and $1::text = any (string_to_array(q.limits, ','))
order by q.name

-- Who holds these keys, and whether that job still waits. The rows are locked by key_take before.
-- $1 text[] queues   $2 text[] keys
select k.queue, k.key, k.job_id, k.until is null as unfinished_only, l.state, l.blocked_by
from unnest($1::text[], $2::text[]) as g(queue, key)
join sluice.job_key k on k.queue = g.queue and k.key = g.key
left join sluice.live l on l.id = k.job_id

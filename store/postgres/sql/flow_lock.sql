-- Locks the row in flow of a queue until the claim commits, and reads the queue's limits and the state of its tokens
-- and turns. No row: another claim has the lock. A queue that is not stored has the defaults.
-- $1 text queue
select coalesce(q.paused and (q.paused_until is null or q.paused_until > clock_timestamp()), false), coalesce(q.rate, 0), coalesce(q.rate_per_ms, 0),
       coalesce(q.burst, 0), coalesce(q.concurrency, 0), coalesce(q.version, 0),
       f.tokens, f.filled_at, f.claimed_at, f.counted_from, f.version, f.counted_since, clock_timestamp(),
       coalesce(q.tenant_concurrency, 0), coalesce(q.tenant_rate, 0), coalesce(q.tenant_rate_per_ms, 0), coalesce(q.tenant_burst, 0),
       coalesce(q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0, false)
           or exists (select from sluice.tenant_limit t where t.queue in ($1::text, '') and t.given),
       f.virtual_start, f.tenant, f.wakes_from, f.fair_since, q.changed_at, coalesce(q.engine, ''), f.permits_from, f.clock_ahead_us,
       coalesce(q.limits, '')
from sluice.flow f
left join sluice.queue q on q.name = f.queue
where f.queue = $1::text
for update of f skip locked

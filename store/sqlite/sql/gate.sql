-- Reads the settings of a queue for a claim and for the end of a job, and the state of its rate and its turns. A queue
-- that is not stored has the defaults. The last 3 columns: whether jobs wait in tenant queues, the engine, and the
-- limits that the queue shares.
-- ?1 queue   ?2 now
select coalesce(q.paused and (q.paused_until is null or q.paused_until > ?2), 0), coalesce(q.audit = 'full', 0),
       exists (select 1 from sluice_awaited a where a.queue = ?1), coalesce(q.rate, 0), coalesce(q.rate_per_ms, 0), coalesce(q.burst, 0), coalesce(q.concurrency, 0), f.tokens, f.filled_at,
       coalesce(q.fair, 0), coalesce(q.tenant_concurrency, 0), coalesce(q.tenant_rate, 0), coalesce(q.tenant_rate_per_ms, 0), coalesce(q.tenant_burst, 0),
       coalesce(q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0, 0)
           or exists (select 1 from sluice_tenant_limit t where t.queue in (?1, '') and t.given),
       coalesce(f.virtual_start, 0), coalesce(f.tenant, ''),
       exists (select 1 from sluice_live l where l.queue = ?1 and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue = 1),
       coalesce(q.engine, ''), coalesce(q.limits, '')
from (select 1)
left join sluice_queue q on q.name = ?1
left join sluice_flow f on f.queue = ?1

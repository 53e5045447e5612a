-- Makes the row in flow of a queue that has limits or jobs in tenant queues, once.
-- $1 text queue
insert into sluice.flow (queue)
select $1::text
where exists (select from sluice.queue q where q.name = $1::text
              and (q.rate > 0 or q.concurrency > 0 or q.limits <> '' or q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0))
   or exists (select from sluice.tenant_limit t where t.queue in ($1::text, '') and t.given)
   or (select true from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
           order by l.due_at limit 1) is not null
on conflict (queue) do nothing

-- Lists when the next job of each priority is due in tenant queues of a queue.
-- $1 text queue   $2 text[] tenants   $3 integer[] priorities of each as bits   $4 timestamptz[] and $5 uuid[] the low-water marks, ten for each tenant queue
select tenant_queue.no, p.priority, due.due_at
from unnest($2::text[], $3::integer[]) with ordinality as tenant_queue(tenant, jobs, no)
cross join generate_series(1, 10) as p(priority)
cross join lateral (
    select w.due_at
    from sluice.live w
    where w.queue = $1::text and w.tenant = tenant_queue.tenant and w.priority = p.priority and w.state = 'queued'
      and w.blocked_by is null and w.in_tenant_queue
      and (w.due_at, w.id) > (($4::timestamptz[])[(tenant_queue.no - 1) * 10 + p.priority], ($5::uuid[])[(tenant_queue.no - 1) * 10 + p.priority])
      and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
    order by w.due_at, w.id
    limit 1
) due
where tenant_queue.jobs & (1 << p.priority) <> 0

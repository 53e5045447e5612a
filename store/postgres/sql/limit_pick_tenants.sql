-- Finds and locks the jobs that a claim from tenant queues of a queue with limits per key or by cost would take; see
-- tenant_queue_claim.sql.
-- $1 text queue   $2 text[] tenants   $3 integer[] shares   $4 integer[] priorities of each as bits
-- $5 timestamptz[] and $6 uuid[] the low-water marks, ten for each tenant queue   $7 smallint[] priorities, in order   $8 interval how soon
select due.id, due.keyed
from unnest($2::text[], $3::integer[], $4::integer[]) with ordinality as tenant_queue(tenant, share, jobs, no)
cross join lateral (
    select first.id, first.keyed
    from unnest($7::smallint[]) as p(priority)
    cross join lateral (
        select w.id, w.limit_key is not null as keyed
        from sluice.live w
        where w.queue = $1::text and w.tenant = tenant_queue.tenant and w.priority = p.priority and w.state = 'queued'
          and w.blocked_by is null and w.in_tenant_queue
          and (w.due_at, w.id) > (($5::timestamptz[])[(tenant_queue.no - 1) * 10 + p.priority], ($6::uuid[])[(tenant_queue.no - 1) * 10 + p.priority])
          and w.due_at <= now() + $8::interval and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
        order by w.due_at, w.id
        limit tenant_queue.share
        for update skip locked
    ) first
    where tenant_queue.jobs & (1 << p.priority) <> 0
    limit tenant_queue.share
) due

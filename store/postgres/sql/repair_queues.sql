-- Lists queues without settings in which jobs wait or are claimed. The statement hops along the indexes of waiting jobs
-- from queue to queue.
with recursive hop as (
    (select queue from sluice.live where state = 'queued' and blocked_by is null and not in_tenant_queue order by queue limit 1)
    union all
    select (select l.queue from sluice.live l
            where l.state = 'queued' and l.blocked_by is null and not l.in_tenant_queue and l.queue > hop.queue order by l.queue limit 1)
    from hop where hop.queue is not null
), hop_in_tenant_queue as (
    (select queue from sluice.live where state = 'queued' and blocked_by is null and in_tenant_queue order by queue limit 1)
    union all
    select (select l.queue from sluice.live l
            where l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue and l.queue > hop_in_tenant_queue.queue order by l.queue limit 1)
    from hop_in_tenant_queue where hop_in_tenant_queue.queue is not null
), used as (
    select queue from hop where queue is not null
    union
    select queue from hop_in_tenant_queue where queue is not null
    union
    select queue from sluice.live where state = 'claimed'
)
select used.queue from used
where not exists (select from sluice.queue q where q.name = used.queue)

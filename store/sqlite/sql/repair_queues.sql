-- Lists queues without settings in which jobs wait or are claimed. The statement hops along the indexes of waiting jobs
-- from queue to queue.
with recursive hop (queue) as (
    select min(queue) from sluice_live where state = 'queued' and blocked_by is null and in_tenant_queue = 0
    union all
    select (select min(l.queue) from sluice_live l
            where l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue = 0 and l.queue > hop.queue)
    from hop where hop.queue is not null
), hop_in_tenant_queue (queue) as (
    select min(queue) from sluice_live where state = 'queued' and blocked_by is null and in_tenant_queue = 1
    union all
    select (select min(l.queue) from sluice_live l
            where l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue = 1 and l.queue > hop_in_tenant_queue.queue)
    from hop_in_tenant_queue where hop_in_tenant_queue.queue is not null
)
select queue from (
    select queue from hop where queue is not null
    union
    select queue from hop_in_tenant_queue where queue is not null
    union
    select queue from sluice_live where state = 'claimed'
)
where queue not in (select name from sluice_queue)

-- Queues in which jobs wait or are claimed and that have no settings. Hops along the claim index from queue to queue.
with recursive hop (queue) as (
    select min(queue) from sluice_live where state = 'queued' and blocked_by is null
    union all
    select (select min(l.queue) from sluice_live l where l.state = 'queued' and l.blocked_by is null and l.queue > hop.queue)
    from hop where hop.queue is not null
)
select queue from (
    select queue from hop where queue is not null
    union
    select queue from sluice_live where state = 'claimed'
)
where queue not in (select name from sluice_queue)

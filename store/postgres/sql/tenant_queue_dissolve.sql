-- Moves waiting jobs out of the tenant queues of a queue that no longer serves its tenants in turns.
-- $1 text queue   $2 integer limit
update sluice.live l
set in_tenant_queue = false
where l.ctid = any (array(
    select w.ctid
    from sluice.live w
    where w.queue = $1::text and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue
    order by w.due_at
    limit $2::integer
    for update skip locked
))
returning l.id

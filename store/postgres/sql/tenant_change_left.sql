-- Deletes the tenant changes of a queue whose tenants no longer take turns. While jobs wait in tenant queues, it deletes none:
-- their tenant changes must be there if the queue changes back.
-- $1 text queue   $2 timestamptz the first instant to read   $3 integer limit
delete from sluice.tenant_change
where ctid = any (array(select h.ctid from sluice.tenant_change h where h.queue = $1::text and h.at >= $2::timestamptz order by h.at limit $3::integer))
  and (select true from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
       order by l.due_at limit 1) is null
returning tenant, jobs, due_at, room, terms, at

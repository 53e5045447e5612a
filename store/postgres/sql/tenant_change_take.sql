-- Deletes and returns the oldest tenant changes of a queue.
-- $1 text queue   $2 timestamptz the first instant to read   $3 integer limit
delete from sluice.tenant_change
where ctid = any (array(select h.ctid from sluice.tenant_change h where h.queue = $1::text and h.at >= $2::timestamptz order by h.at limit $3::integer))
returning tenant, jobs, due_at, room, terms, at

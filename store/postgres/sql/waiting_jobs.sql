-- Counts the waiting jobs of a queue. The count stops at the limit.
-- $1 text queue   $2 integer limit
select count(*) from (
    (select from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and not l.in_tenant_queue
     limit $2::integer)
    union all
    (select from sluice.live l where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
     limit $2::integer)
    union all
    (select from sluice.live l where l.queue = $1::text and l.blocked_by is not null limit $2::integer)
    limit $2::integer) n

-- Counts the waiting jobs of a tenant, in a queue that serves its tenants apart. The count stops at the limit.
-- $1 text queue   $2 text tenant   $3 integer limit
select count(*) from (
    (select from sluice.live l where l.queue = $1::text and l.tenant = $2::text and l.state = 'queued' and l.blocked_by is null
         and l.in_tenant_queue
     limit $3::integer)
    union all
    (select from sluice.live l where l.queue = $1::text and l.tenant = $2::text and l.blocked_by is not null limit $3::integer)
    limit $3::integer) n

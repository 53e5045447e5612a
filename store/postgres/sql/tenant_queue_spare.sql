-- Reads the tenant queues of a queue that no transaction has written since they were found idle. The caller holds the
-- lock of the queue's row in flow.
-- $1 text queue   $2 text[] tenants   $3 bigint[] the version of each
select l.ctid, l.tenant, l.virtual_start, l.active, l.at_limit, l.wake_at, l.tokens, l.filled_at
from unnest($2::text[], $3::bigint[]) as f(tenant, version)
cross join lateral (
    select w.ctid, w.*
    from sluice.tenant_queue w
    where w.queue = $1::text and w.tenant = f.tenant and w.version = f.version
    order by w.version desc
    limit 1
) l

-- Reads a version of each queue's row, and whether the queue serves its tenants in turns. Every change of a row changes
-- its version.
-- $1 text[] names
select name, q.xmin::text || ' ' || q.ctid::text,
       q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0 or exists (select from sluice.tenant_limit t where t.queue in (q.name, '') and t.given),
       clock_timestamp()
from sluice.queue q
where name = any($1::text[])

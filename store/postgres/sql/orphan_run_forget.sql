-- Deletes orphan runs that have ended, and adds tenant changes, because the tenants have room again.
-- $1 uuid[] jobs   $2 text[] refs
with gone as (
    delete from sluice.orphan_run s
    using unnest($1::uuid[], $2::text[]) as g(job_id, ref)
    where s.job_id = g.job_id and s.ref = g.ref and s.job_id = any ($1::uuid[])
    returning s.job_id, s.queue, s.tenant
), tenant_changed as (
    insert into sluice.tenant_change (queue, tenant, jobs, room)
    select distinct queue, tenant, 0, true from gone where tenant <> ''
)
select job_id, queue, '' from gone

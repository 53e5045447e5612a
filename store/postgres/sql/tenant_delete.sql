-- Deletes a tenant and its limits, and audits this. The tenant's jobs stay.
-- $1 text name   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.tenant where name = $1::text returning name
), limits as (
    delete from sluice.tenant_limit where tenant = $1::text and tenant <> ''
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, act_id)
    select 'tenant', name, 'delete', $2::text, $3::text, $4::uuid from gone
)
select name from gone

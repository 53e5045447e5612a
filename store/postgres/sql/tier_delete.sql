-- Deletes a tier and its limits, and audits this.
-- $1 text name   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.tier where name = $1::text returning name
), limits as (
    delete from sluice.tenant_limit where tier = $1::text and tier <> ''
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, act_id)
    select 'tier', name, 'delete', $2::text, $3::text, $4::uuid from gone
)
select name from gone

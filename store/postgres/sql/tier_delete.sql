-- Deletes a tier and its limits, and audits this. Its tenants are then in no tier.
-- $1 text name   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.tier where name = $1::text returning name
), limits as (
    delete from sluice.tenant_limit where tier = $1::text and tier <> ''
), members as (
    update sluice.tenant t set tier = '', version = t.version + 1, changed_at = now(), changed_by = $2::text, reason = $3::text
    from gone where t.tier = gone.name returning t.name
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, act_id, before, after)
    select 'tier', name, 'delete', $2::text, $3::text, $4::uuid, null::jsonb, null::jsonb from gone
    union all
    select 'tenant', name, 'change', $2::text, $3::text, $4::uuid, jsonb_build_object('tier', $1::text), jsonb_build_object('tier', '') from members
)
select name from gone

-- Takes tenants out of a tier, among the next ones by name, and audits this. Returns the last name that the statement looked at.
-- No row: there are no more tenants, or no such tier.
-- $1 text tier   $2 text by whom   $3 text reason   $4 uuid act   $5 text after   $6 integer limit
with part as materialized (
    select t.name, t.tier
    from sluice.tenant t
    where t.name > $5::text and exists (select from sluice.tier r where r.name = $1::text)
    order by t.name
    limit $6::integer
), members as (
    update sluice.tenant t set tier = '', version = t.version + 1, changed_at = now(), changed_by = $2::text, reason = $3::text
    where t.name = any (array(select p.name from part p where p.tier = $1::text)) and t.tier = $1::text
    returning t.name
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, act_id, before, after)
    select 'tenant', m.name, 'change', $2::text, $3::text, $4::uuid, jsonb_build_object('tier', $1::text), jsonb_build_object('tier', '') from members m
)
select p.name from part p order by p.name desc limit 1

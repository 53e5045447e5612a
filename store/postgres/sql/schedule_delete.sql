-- Deletes a schedule, and audits this.
-- $1 text name   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.schedule where name = $1::text returning name
)
insert into sluice.audit (object, name, event, actor, reason, act_id)
select 'schedule', name, 'delete', $2::text, $3::text, $4::uuid from gone
returning name

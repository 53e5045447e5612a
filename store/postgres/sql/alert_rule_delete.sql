-- Deletes a stored rule of alerts, and audits this.
-- $1 text name   $2 text queue   $3 text what the audit calls it   $4 text by whom   $5 text reason   $6 uuid act
with gone as (
    delete from sluice.alert_rule where name = $1::text and queue = $2::text returning name
)
insert into sluice.audit (object, name, event, actor, reason, act_id)
select 'alert', $3::text, 'delete', $4::text, $5::text, $6::uuid from gone
returning name

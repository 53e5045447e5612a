-- Deletes a limit that no queue shares, with its state, and audits this.
-- $1 text name   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.named_limit
    where name = $1::text
      and not exists (select from sluice.queue q where q.limits <> '' and $1::text = any (string_to_array(q.limits, ',')))
    returning name
), all_flow as (
    delete from sluice.flow f using gone where f.queue = '@' || gone.name
), all_keys as (
    delete from sluice.limit_key k using gone where k.name = gone.name
), all_lanes as (
    delete from sluice.limit_lane l using gone where l.name = gone.name
), all_changes as (
    delete from sluice.limit_change c using gone where c.name = gone.name
), all_permit as (
    delete from sluice.permit p using gone where p.queue = '@' || gone.name
), all_started as (
    delete from sluice.started s using gone where s.queue = '@' || gone.name
)
insert into sluice.audit (object, name, event, actor, reason, act_id)
select 'limit', name, 'delete', $2::text, $3::text, $4::uuid from gone
returning name

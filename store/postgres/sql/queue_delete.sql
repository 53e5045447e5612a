-- Deletes a queue and all its rows except jobs, and audits this.
-- $1 text queue   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.queue where name = $1::text returning name
),
all_tenant_limit as (
    delete from sluice.tenant_limit where queue = $1::text
),
all_tenant_queue as (
    delete from sluice.tenant_queue where queue = $1::text
),
all_tenant_change as (
    delete from sluice.tenant_change where queue = $1::text
),
all_flow as (
    delete from sluice.flow where queue = $1::text
),
all_limit_lane as (
    delete from sluice.limit_lane where queue = $1::text
),
all_result_cursor as (
    delete from sluice.result_cursor where queue = $1::text
),
all_permit as (
    delete from sluice.permit where queue = $1::text
),
all_started as (
    delete from sluice.started where queue = $1::text
),
all_pace as (
    delete from sluice.pace where queue = $1::text
),
all_wave as (
    delete from sluice.wave where queue = $1::text
),
all_wave_count as (
    delete from sluice.wave_count where queue = $1::text
),
all_alert_rule as (
    delete from sluice.alert_rule where queue = $1::text
),
all_alert as (
    delete from sluice.alert where queue = $1::text
),
all_alert_silence as (
    delete from sluice.alert_silence where queue = $1::text
)
insert into sluice.audit (object, name, event, actor, reason, act_id)
select 'queue', name, 'delete', $2::text, $3::text, $4::uuid from gone

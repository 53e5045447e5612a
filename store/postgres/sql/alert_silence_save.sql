-- Stores a silence that begins now, and audits this. A silence that is already stored stays as it is; then no row returns.
-- $1 uuid id   $2 text rule   $3 text queue   $4 interval how long   $5 text by whom   $6 text reason   $7 text what the audit calls it
-- $8 uuid act
with saved as (
    insert into sluice.alert_silence (id, rule, queue, until, made_by, reason)
    values ($1::uuid, $2::text, $3::text, now() + $4::interval, $5::text, $6::text)
    on conflict (id) do nothing
    returning id, rule, queue, created_at, until, made_by, reason
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, after, act_id)
    select 'alert', $7::text, 'silence', s.made_by, s.reason, jsonb_build_object('id', s.id, 'rule', s.rule, 'queue', s.queue, 'until', s.until),
           $8::uuid
    from saved s
)
select id, rule, queue, created_at, until, made_by, reason from saved

-- Ends a silence before its time, and audits this.
-- $1 uuid id   $2 text by whom   $3 text reason   $4 uuid act
with gone as (
    delete from sluice.alert_silence where id = $1::uuid and until > now() returning id, rule, queue, until
)
insert into sluice.audit (object, name, event, actor, reason, after, act_id)
select 'alert', case g.rule when '' then '*' else g.rule end || case g.queue when '' then '' else '/' || g.queue end, 'unsilence', $2::text,
       $3::text, jsonb_build_object('id', g.id, 'rule', g.rule, 'queue', g.queue, 'until', g.until), $4::uuid
from gone g
returning name

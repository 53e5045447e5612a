-- Audits queues that were just made, and stores the audited settings.
-- $1 text[] names   $2 text the settings as JSON   $3 text by whom   $4 text reason   $5 jsonb the settings for the audit   $6 uuid act
with audited as (
    update sluice.queue set recorded = $2::text::jsonb where name = any($1::text[]) returning name
)
insert into sluice.audit (object, name, event, actor, reason, after, act_id)
select 'queue', name, 'change', $3::text, $4::text, $5::jsonb, $6::uuid from audited order by name

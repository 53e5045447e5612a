-- Adds entries to the audit that record no move.
-- $1 text[] objects   $2 text[] names   $3 text[] events   $4 text[] by whom   $5 text[] reasons   $6 uuid[] jobs (or null)
-- $7 integer[] generations   $8 text[] before (JSON or null)   $9 text[] after (JSON or null)   $10 uuid[] acts (or null)
insert into sluice.audit (object, name, event, actor, reason, job_id, generation, before, after, act_id)
select g.object, g.name, g.event, g.actor, g.reason, g.job_id, g.generation, g.before::jsonb, g.after::jsonb, g.act_id
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::integer[], $8::text[], $9::text[], $10::uuid[])
    with ordinality as g(object, name, event, actor, reason, job_id, generation, before, after, act_id, place)
order by g.place

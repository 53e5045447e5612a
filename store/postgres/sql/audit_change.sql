-- Adds an entry to the audit about a changed object, such as a queue, a tier or a schedule.
-- $1 text object   $2 text name   $3 text by whom   $4 text reason   $5 jsonb before   $6 jsonb after   $7 uuid act
insert into sluice.audit (object, name, event, actor, reason, before, after, act_id)
values ($1::text, $2::text, 'change', $3::text, $4::text, $5::jsonb, $6::jsonb, $7::uuid)

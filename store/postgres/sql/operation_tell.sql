-- Tells the audit of a change of an operation.
-- $1 text queue ('': of all)   $2 text event   $3 text by whom   $4 text reason   $5 jsonb before (or null)   $6 jsonb after   $7 uuid act
insert into sluice.audit (object, name, event, actor, reason, before, after, act_id)
values ('queue', $1::text, $2::text, $3::text, $4::text, $5::jsonb, $6::jsonb, $7::uuid)

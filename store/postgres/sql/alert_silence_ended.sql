-- Reports whether an act has ended a silence.
-- $1 uuid act   $2 uuid silence
select exists (select from sluice.audit where act_id = $1::uuid and object = 'alert' and event = 'unsilence' and after ->> 'id' = ($2::uuid)::text)

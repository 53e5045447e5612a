-- Reports whether an act has ended a silence.
-- ?1 act   ?2 the silence, as text
select exists (select 1 from sluice_audit where act_id = ?1 and object = 'alert' and event = 'unsilence' and json_extract(after, '$.id') = ?2)

-- Returns whether the audit has an entry of an act about an object.
-- ?1 act id   ?2 object   ?3 name
select exists (select 1 from sluice_audit where act_id = ?1 and object = ?2 and name = ?3)

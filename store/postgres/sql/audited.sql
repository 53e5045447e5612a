-- Returns whether the audit has an entry of an act about an object.
-- $1 uuid act   $2 text object   $3 text name
select exists (select from sluice.audit where act_id = $1::uuid and object = $2::text and name = $3::text)

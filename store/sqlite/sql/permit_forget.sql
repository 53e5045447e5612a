-- Deletes a permit whose jobs have all begun, or never will.
-- ?1 queue   ?2 claimed_at   ?3 token
delete from sluice_permit where queue = ?1 and claimed_at = ?2 and token = ?3

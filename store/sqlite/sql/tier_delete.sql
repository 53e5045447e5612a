-- Deletes a tier.
-- ?1 name
delete from sluice_tier where name = ?1

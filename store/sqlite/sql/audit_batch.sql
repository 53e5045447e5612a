-- Returns the batch of a seal.
-- ?1 seal   ?2 level
select body from sluice_audit_batch where seal = ?1 and level = ?2

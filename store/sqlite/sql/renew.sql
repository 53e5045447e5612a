-- Extends the lease of a claim that was read in the same transaction.
-- ?1 seq   ?2 lease_until
update sluice_live set lease_until = ?2 where seq = ?1

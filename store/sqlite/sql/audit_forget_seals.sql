-- Deletes the seals that no entry needs any more.
-- ?1 the first that is needed
delete from sluice_audit_seal where no < ?1

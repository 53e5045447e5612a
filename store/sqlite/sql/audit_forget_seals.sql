-- Deletes the seals that no entry needs any more.
-- ?1 number of the first seal to keep
delete from sluice_audit_seal where no < ?1

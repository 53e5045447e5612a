-- Deletes a limit.
-- ?1 name
delete from sluice_named_limit where name = ?1

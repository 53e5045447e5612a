-- Deletes the limit keys of a limit.
-- ?1 name of the limit
delete from sluice_limit_key where name = ?1

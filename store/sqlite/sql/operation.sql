-- Reads an operation.
-- ?1 id
select version, body from sluice_operation where id = ?1

-- Reads and locks an operation, before a change.
-- $1 uuid id
select version, body, now() from sluice.operation where id = $1::uuid for update

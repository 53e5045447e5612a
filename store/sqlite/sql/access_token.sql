-- Reads a token of the HTTP API.
-- ?1 name
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason from sluice_access_token where name = ?1

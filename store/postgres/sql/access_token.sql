-- Reads a token of the HTTP API.
-- $1 text name
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason, now() from sluice.access_token where name = $1::text

-- Notes when a token of the HTTP API was used last.
-- $1 text name
update sluice.access_token set used_at = now() where name = $1::text

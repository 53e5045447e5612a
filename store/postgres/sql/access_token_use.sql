-- Records the last use of a token of the HTTP API.
-- $1 text name
update sluice.access_token set used_at = now() where name = $1::text

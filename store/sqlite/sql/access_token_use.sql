-- Notes when a token of the HTTP API was used last.
-- ?1 name   ?2 now
update sluice_access_token set used_at = ?2 where name = ?1

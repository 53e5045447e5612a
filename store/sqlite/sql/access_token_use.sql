-- Records the last use of a token of the HTTP API.
-- ?1 name   ?2 now
update sluice_access_token set used_at = ?2 where name = ?1

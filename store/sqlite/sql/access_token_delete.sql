-- Deletes a token of the HTTP API.
-- ?1 name
delete from sluice_access_token where name = ?1

-- Lists a page of the tokens of the HTTP API, by name.
-- ?1 after (a name)   ?2 limit
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason
from sluice_access_token
where name > ?1
order by name
limit ?2 + 0

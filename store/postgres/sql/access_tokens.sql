-- Lists a page of the tokens of the HTTP API, by name.
-- $1 text after (a name)   $2 integer limit
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason, now()
from sluice.access_token
where name > $1::text
order by name
limit $2::integer

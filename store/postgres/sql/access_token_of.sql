-- The token of a secret: its hash is the present or the old one. A token of the present hash goes first.
-- $1 text hash
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason, now() from sluice.access_token where hash = $1::text
union all
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason, now() from sluice.access_token where old_hash = $1::text
limit 1

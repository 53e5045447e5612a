-- Finds the token of a secret, by the present or the old hash. A token with the present hash goes first.
-- ?1 hash
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason from sluice_access_token where hash = ?1
union all
select name, hash, old_hash, terms, used_at, version, changed_at, changed_by, reason from sluice_access_token where old_hash = ?1
limit 1

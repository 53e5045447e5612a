-- Deletes limit keys without state, along the index sluice_limit_key_idle.
-- ?1 now   ?2 limit
delete from sluice_limit_key
where (name, key) in (select name, key from sluice_limit_key where idle_from < ?1 order by idle_from limit ?2 + 0)

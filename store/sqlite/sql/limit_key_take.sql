-- Stores the tokens of a limit key after claims.
-- ?1 name of the limit   ?2 key   ?3 tokens   ?4 filled_at   ?5 when the bucket will be full
insert into sluice_limit_key (name, key, tokens, filled_at, idle_from) values (?1, ?2, ?3, ?4, ?5)
on conflict (name, key) do update set tokens = excluded.tokens, filled_at = excluded.filled_at, idle_from = max(excluded.idle_from, coalesce(closed_until, 0))

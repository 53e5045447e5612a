-- Closes a limit key until an instant, or opens it. A key that is closed for longer stays as it is.
-- ?1 name of the limit   ?2 key   ?3 closed_until or null   ?4 now
insert into sluice_limit_key (name, key, closed_until, idle_from) values (?1, ?2, ?3, coalesce(?3, ?4))
on conflict (name, key) do update set closed_until = excluded.closed_until, idle_from = max(idle_from, excluded.idle_from)
where excluded.closed_until is null or closed_until is null or closed_until < excluded.closed_until

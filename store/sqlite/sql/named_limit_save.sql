-- Stores a limit, whose version was read in the same transaction.
-- ?1 name   ?2 concurrency   ?3 rate   ?4 rate_per_ms   ?5 burst   ?6 closed   ?7 closed_until or null   ?8 version   ?9 now
-- ?10 actor   ?11 reason   ?12 per_key   ?13 by_cost
insert into sluice_named_limit (name, concurrency, rate, rate_per_ms, burst, closed, closed_until, version, changed_at, changed_by, reason, per_key, by_cost)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
on conflict (name) do update
set concurrency = excluded.concurrency, rate = excluded.rate, rate_per_ms = excluded.rate_per_ms, burst = excluded.burst,
    closed = excluded.closed, closed_until = excluded.closed_until, version = excluded.version, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, reason = excluded.reason, per_key = excluded.per_key, by_cost = excluded.by_cost

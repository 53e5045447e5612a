-- Stores limits, whose version was read in the same transaction.
-- ?1 queue   ?2 tier   ?3 tenant   ?4 concurrency   ?5 rate   ?6 burst   ?7 weight   ?8 until   ?9 paused   ?10 paused_until   ?11 version
-- ?12 now   ?13 actor   ?14 reason   ?15 rate_per_ms
insert into sluice_tenant_limit (queue, tier, tenant, concurrency, rate, burst, weight, until, paused, paused_until, version, changed_at, changed_by, reason, rate_per_ms)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
on conflict (queue, tier, tenant) do update
set concurrency = excluded.concurrency, rate = excluded.rate, rate_per_ms = excluded.rate_per_ms, burst = excluded.burst, weight = excluded.weight, until = excluded.until,
    paused = excluded.paused, paused_until = excluded.paused_until, version = excluded.version, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, reason = excluded.reason

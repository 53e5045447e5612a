-- Stores limits, unless somebody else changed them in between.
-- $1 text queue   $2 text tier   $3 text tenant   $4 bigint concurrency   $5 double precision rate   $6 bigint burst   $7 bigint weight
-- $8 timestamptz until   $9 boolean paused   $10 timestamptz paused_until   $11 bigint the version they were read with (0: new)
-- $12 text by whom   $13 text reason   $14 bigint rate_per_ms
insert into sluice.tenant_limit as t (queue, tier, tenant, concurrency, rate, burst, weight, until, paused, paused_until, changed_by, reason, rate_per_ms)
select $1::text, $2::text, $3::text, $4::bigint, $5::double precision, $6::bigint, $7::bigint, $8::timestamptz, $9::boolean, $10::timestamptz,
       $12::text, $13::text, $14::bigint
where $11::bigint = 0 or exists (select from sluice.tenant_limit where queue = $1::text and tier = $2::text and tenant = $3::text)
on conflict (queue, tier, tenant) do update
set concurrency = excluded.concurrency, rate = excluded.rate, rate_per_ms = excluded.rate_per_ms, burst = excluded.burst, weight = excluded.weight, until = excluded.until,
    paused = excluded.paused, paused_until = excluded.paused_until, version = t.version + 1, changed_at = now(),
    changed_by = excluded.changed_by, reason = excluded.reason
where t.version = $11::bigint
returning changed_at

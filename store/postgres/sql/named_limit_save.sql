-- Stores a limit, unless somebody else changed it in between.
-- $1 text name   $2 bigint concurrency   $3 double precision rate   $4 bigint rate_per_ms   $5 bigint burst   $6 boolean closed
-- $7 timestamptz closed_until   $8 bigint the version it was read with (0: new)   $9 text by whom   $10 text reason
-- $11 boolean per_key   $12 boolean by_cost
insert into sluice.named_limit as n (name, concurrency, rate, rate_per_ms, burst, closed, closed_until, changed_by, reason, per_key, by_cost)
select $1::text, $2::bigint, $3::double precision, $4::bigint, $5::bigint, $6::boolean, $7::timestamptz, $9::text, $10::text, $11::boolean, $12::boolean
where $8::bigint = 0 or exists (select from sluice.named_limit where name = $1::text)
on conflict (name) do update
set concurrency = excluded.concurrency, rate = excluded.rate, rate_per_ms = excluded.rate_per_ms, burst = excluded.burst,
    closed = excluded.closed, closed_until = excluded.closed_until, version = n.version + 1, changed_at = now(),
    changed_by = excluded.changed_by, reason = excluded.reason, per_key = excluded.per_key, by_cost = excluded.by_cost
where n.version = $8::bigint
returning changed_at

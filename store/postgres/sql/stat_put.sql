-- Stores a bucket with its sums.
-- $1 integer every_s   $2 timestamptz at   $3 text queue   $4 to $15 bigint counts   $16 text wait   $17 text run
-- $18 text total   $19 text level   $20 text tenants
insert into sluice.stat (every_s, at, queue, enqueued, requeued, claimed, dispatched, completed, dead, cancelled, uncertain,
                         failed, released, recovered, start_failed, wait, run, total, level, tenants)
values ($1::integer, $2::timestamptz, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint,
        $11::bigint, $12::bigint, $13::bigint, $14::bigint, $15::bigint, $16::text, $17::text, $18::text, $19::text, $20::text)
on conflict (every_s, at, queue) do update set
    enqueued = excluded.enqueued, requeued = excluded.requeued, claimed = excluded.claimed, dispatched = excluded.dispatched,
    completed = excluded.completed, dead = excluded.dead, cancelled = excluded.cancelled, uncertain = excluded.uncertain,
    failed = excluded.failed, released = excluded.released, recovered = excluded.recovered, start_failed = excluded.start_failed,
    wait = excluded.wait, run = excluded.run, total = excluded.total, level = excluded.level, tenants = excluded.tenants

-- Records that a queue was counted. No row: a later count is stored. One of an instant to come was made before the clock
-- was set back.
-- $1 text queue   $2 timestamptz counted at   $3 double precision took in ms
insert into sluice.wave_count as c (queue, counted_at, took_ms)
values ($1::text, $2::timestamptz, $3::double precision)
on conflict (queue) do update set counted_at = excluded.counted_at, took_ms = excluded.took_ms
where c.counted_at < excluded.counted_at or c.counted_at > clock_timestamp()
returning c.queue

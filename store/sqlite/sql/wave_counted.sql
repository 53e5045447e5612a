-- Records that a queue was counted. No row: a later count is stored. One of an instant to come was made before the clock
-- was set back.
-- ?1 queue   ?2 counted_at   ?3 took_us   ?4 now
insert into sluice_wave_count (queue, counted_at, took_us)
values (?1, ?2, ?3)
on conflict (queue) do update set counted_at = excluded.counted_at, took_us = excluded.took_us
where counted_at < excluded.counted_at or counted_at > ?4
returning queue

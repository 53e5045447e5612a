-- Stores when claims look again at the parked jobs of a limit key.
-- ?1 queue   ?2 key   ?3 wake_at
insert into sluice_limit_lane (queue, key, wake_at) values (?1, ?2, ?3)
on conflict (key, queue) do update set wake_at = excluded.wake_at

-- Makes a receiver of alerts known.
-- ?1 name   ?2 now
insert into sluice_alert_receiver (name, seen) values (?1, ?2) on conflict (name) do update set seen = excluded.seen

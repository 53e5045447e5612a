-- Stores a receiver of alerts, and that a process asks for it.
-- ?1 name   ?2 its queue   ?3 now
insert into sluice_alert_receiver (name, queue, seen) values (?1, ?2, ?3) on conflict (name) do update set seen = excluded.seen

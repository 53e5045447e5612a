-- Stores a receiver of alerts, and that a process asks for it. A receiver that was seen within the last minute is not
-- written again.
-- $1 text name   $2 text its queue
insert into sluice.alert_receiver as r (name, queue) values ($1::text, $2::text)
on conflict (name) do update set seen = now() where r.seen < now() - interval '1 minute'

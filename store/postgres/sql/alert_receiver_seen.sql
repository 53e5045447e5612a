-- Makes a receiver of alerts known. One that was seen within the last minute is not written again.
-- $1 text name
insert into sluice.alert_receiver as r (name) values ($1::text)
on conflict (name) do update set seen = now() where r.seen < now() - interval '1 minute'

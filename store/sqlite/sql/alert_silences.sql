-- Lists the silences that are not over, by their end.
-- ?1 now
select id, rule, queue, created_at, until, made_by, reason
from sluice_alert_silence
where until > ?1
order by until, id

-- Lists the silences that are not over, by their end.
select id, rule, queue, created_at, until, made_by, reason
from sluice.alert_silence
where until > now()
order by until, id

-- Lists the silences that are not over, those that end first first.
select id, rule, queue, created_at, until, made_by, reason
from sluice.alert_silence
where until > now()
order by until, id

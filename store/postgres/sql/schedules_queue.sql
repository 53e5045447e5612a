-- Lists a page of the schedules of a queue, by name.
-- $1 text queue   $2 text after (a name)   $3 integer limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason, now()
from sluice.schedule
where queue = $1::text and name collate "C" > $2::text
order by name collate "C"
limit $3::integer

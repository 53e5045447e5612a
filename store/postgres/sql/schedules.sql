-- A page of schedules, by name.
-- $1 text after (a name)   $2 text queue (empty: all)   $3 integer limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason, now()
from sluice.schedule
where name > $1::text and ($2::text = '' or queue = $2::text)
order by name
limit $3::integer

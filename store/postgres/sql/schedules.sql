-- Lists a page of schedules, by name.
-- $1 text after (a name)   $2 integer limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason, now()
from sluice.schedule
where name > $1::text
order by name
limit $2::integer

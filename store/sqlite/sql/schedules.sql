-- Lists a page of schedules, by name.
-- ?1 after (a name)   ?2 limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason
from sluice_schedule
where name > ?1
order by name
limit ?2 + 0

-- Lists a page of the schedules of a queue, by name.
-- ?1 queue   ?2 after (a name)   ?3 limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason
from sluice_schedule
where queue = ?1 and name > ?2
order by name
limit ?3 + 0

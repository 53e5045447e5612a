-- A page of schedules, by name.
-- ?1 after (a name)   ?2 queue (empty: all)   ?3 limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason
from sluice_schedule
where name > ?1 and (?2 = '' or queue = ?2)
order by name
limit ?3 + 0

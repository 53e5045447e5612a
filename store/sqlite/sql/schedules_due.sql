-- Lists the schedules whose next fire is due, the longest due first.
-- ?1 now   ?2 limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason
from sluice_schedule
where next_at <= ?1
order by next_at
limit ?2 + 0

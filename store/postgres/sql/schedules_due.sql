-- Locks the schedules whose next fire is due, the longest due first. It leaves out those that another process fires or
-- changes now.
-- $1 integer limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason, now()
from sluice.schedule
where next_at <= now()
order by next_at
limit $1::integer
for update skip locked

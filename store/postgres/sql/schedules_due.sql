-- Locks the schedules whose next fire is due, the longest due first. The statement skips schedules that another process
-- fires or changes now.
-- $1 timestamptz low-water mark; see schedules_next.sql   $2 integer limit
select name, version, next_at, definition, progress, changed_at, changed_by, reason, now()
from sluice.schedule
where next_at <= now() and next_at >= $1::timestamptz
order by next_at
limit $2::integer
for update skip locked

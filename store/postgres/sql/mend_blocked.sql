-- Lets jobs go that wait behind a job which has ended.
update sluice.live l
set blocked_by = null
where l.blocked_by is not null and not exists (select from sluice.live b where b.id = l.blocked_by)
returning l.id, l.queue, l.state

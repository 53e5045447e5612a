-- Lets the jobs behind ended ones go. A statement of its own: end may have waited for an enqueue to put one there, and
-- would not see it.
-- $1 uuid[] ids of the ended
update sluice.live l
set blocked_by = null
where l.blocked_by = any ($1::uuid[])
returning l.id, l.queue, 'let go'

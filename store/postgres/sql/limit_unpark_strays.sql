-- Unparks the parked jobs that no limit keeps out any more. They keep their turns in their orders. The coalesce keeps
-- the planner from the index of all parked jobs.
-- $1 uuid[] jobs, sorted
update sluice.live l set parked = false, blocked_by = null where l.id = any ($1::uuid[]) and coalesce(l.parked, false)
returning l.id, l.queue, 'let go'

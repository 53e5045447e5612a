-- Takes the marks from parked jobs that no limit keeps out any more, before they are looked at.
-- The coalesce keeps the planner from the index of all parked jobs.
-- $1 uuid[] jobs, sorted
update sluice.live l set parked = false where l.id = any ($1::uuid[]) and coalesce(l.parked, false)

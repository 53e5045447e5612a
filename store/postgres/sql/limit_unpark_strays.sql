-- Takes the marks from parked jobs that no limit keeps out any more, before they are looked at.
-- $1 uuid[] jobs, sorted
update sluice.live l set parked = false where l.id = any ($1::uuid[]) and l.parked

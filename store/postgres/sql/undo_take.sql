-- Gives lives that an undo is about to end the state and figures of the lives before them.
-- $1 uuid[] ids
update sluice.live l
set due_at = b.due_at, claimed_at = b.claimed_at, dispatched_at = b.dispatched_at, attempts = b.attempts, releases = b.releases,
    recoveries = b.recoveries, holder = b.holder, ref = b.ref, error = b.error
from sluice.done b
where l.id = any ($1::uuid[]) and b.id = l.id and b.generation = l.generation - 1

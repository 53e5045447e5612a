-- Locks jobs that wait in a life from a requeue and that nobody has claimed since, and returns the outcomes of the
-- lives before.
-- $1 uuid[] ids, sorted
select l.id, d.outcome
from sluice.live l
join sluice.done d on d.id = l.id and d.generation = l.generation - 1
where l.id = any ($1::uuid[]) and l.state = 'queued' and l.attempts + l.releases + l.recoveries = 0
order by l.id
for update of l

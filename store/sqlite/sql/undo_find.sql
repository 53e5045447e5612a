-- Finds the outcome of the life before, for a job that waits in a life from a requeue and that nobody has claimed
-- since.
-- ?1 seq
select d.outcome
from sluice_live l
join sluice_done d on d.seq = l.seq and d.generation = l.generation - 1
where l.seq = ?1 and l.state = 'queued' and l.attempts + l.releases + l.recoveries = 0

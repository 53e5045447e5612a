-- Reads the live rows of jobs, before moves in the same transaction.
-- ?1 ids as a JSON array of hexadecimal texts
select l.seq, j.id, l.queue, l.state, l.token, l.generation, l.attempts, l.recoveries, l.holder, l.claimed_at, l.lease_until,
       l.keyed, l.blocked_by, l.batch_id
from json_each(?1) given
join sluice_job j on j.id = unhex(given.value)
join sluice_live l on l.seq = j.seq

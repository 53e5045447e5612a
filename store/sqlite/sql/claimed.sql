-- Reads claimed jobs for their holder, in the order of the list.
-- ?1 seqs as a JSON array   ?2 token
select j.id, l.priority, l.due_at, l.generation, l.attempts, l.releases, l.recoveries, l.error, l.checkpoint, l.tenant,
       l.expires_at, j.key, j.payload, j.labels, j.max_attempts, j.created_at, l.claimed_at, l.lease_until, {{j.more}}, l.queue
from json_each(?1) given
cross join sluice_live l on l.seq = given.value
cross join sluice_job j on j.seq = l.seq
where l.state = 'claimed' and l.token = ?2

-- What an earlier claim with this token got, if its answer was lost.
-- ?1 token
select l.seq, j.id, l.due_at, l.generation, l.attempts, l.releases, l.recoveries, l.error, l.checkpoint, l.tenant,
       l.expires_at, j.key, j.payload, j.labels, j.max_attempts, j.created_at, l.priority, l.claimed_at, l.lease_until
from sluice_live l
join sluice_job j on j.seq = l.seq
where l.state = 'claimed' and l.token = ?1
order by l.priority, l.due_at, l.seq

-- Jobs of one queue and priority that are due, the longest due first; a walk along the index sluice_live_claim.
-- ?1 queue   ?2 priority   ?3 now   ?4 limit
select l.seq, j.id, l.due_at, l.generation, l.attempts, l.releases, l.recoveries, l.error, l.checkpoint, l.tenant,
       l.expires_at, j.key, j.payload, j.labels, j.max_attempts, j.created_at
from sluice_live l
join sluice_job j on j.seq = l.seq
where l.queue = ?1 and l.priority = ?2 and l.state = 'queued' and l.blocked_by is null and l.due_at <= ?3
  and (l.expires_at is null or l.expires_at > ?3)
order by l.due_at, l.seq
limit ?4

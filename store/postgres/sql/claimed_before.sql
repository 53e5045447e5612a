-- What an earlier claim with this token got, if its answer was lost. Where somebody deleted the row of a job, created_at is null.
-- $1 uuid token
select l.id, l.priority, l.due_at, l.generation, l.attempts, l.releases, l.recoveries, l.claimed_at, l.lease_until,
       l.error, l.checkpoint, l.tenant, l.expires_at, j.key, j.payload, j.labels, j.max_attempts, j.created_at,
       j.order_key, j.after, j.after_failure
from sluice.live l
left join lateral (select * from sluice.job w where w.id = l.id offset 0) j on true
where l.state = 'claimed' and l.token = $1::uuid
order by l.priority, l.due_at, l.id

-- Hands the keys of jobs that have ended to the twins that these waited for. Before key_free, in the same transaction.
-- $1 uuid[] ids   $2 uuid[] the job that each waited for, or null
update sluice.job_key k
set job_id = b.id
from unnest($1::uuid[], $2::uuid[]) as e(id, blocked_by), sluice.job j, sluice.job b
where e.blocked_by is not null and j.id = e.id and j.id = any ($1::uuid[]) and b.id = e.blocked_by and b.queue = j.queue and b.key = j.key
  and k.queue = j.queue and k.key = j.key and k.job_id = e.id and k.until is null

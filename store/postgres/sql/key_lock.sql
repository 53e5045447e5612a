-- Locks the key of a job until the transaction ends. A job gets another tenant only behind this lock: an enqueue with the
-- key compares the tenants while it has the lock.
-- $1 uuid job id
with named as materialized (
    select j.queue, j.key from sluice.job j where j.id = $1::uuid and j.key is not null
)
select k.job_id
from named n
cross join lateral (
    select w.job_id from sluice.job_key w
    where w.queue = n.queue and w.key = n.key
    limit 1
    for update
) k

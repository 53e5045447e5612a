-- Lists the failed attempts of a job, the oldest first.
-- $1 uuid id
select job_id, generation, attempt, claimed_at, failed_at, holder, error, stack
from sluice.attempt
where job_id = $1::uuid
order by generation, attempt

-- Lists the failed attempts of a job, the oldest first.
-- ?1 id
select generation, attempt, claimed_at, failed_at, holder, error, stack
from sluice_attempt
where seq = (select seq from sluice_job where id = ?1)
order by generation, attempt

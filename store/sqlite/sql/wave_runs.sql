-- Returns the mean microseconds from claim to end, by queue, over the newest finished jobs of all queues, and the
-- number of these jobs. Cancelled jobs do not count.
-- ?1 how many finished jobs to read
select queue, avg(finished_at - claimed_at), count(*)
from (select queue, outcome, claimed_at, finished_at from sluice_done order by seq desc, generation desc limit ?1 + 0)
where claimed_at is not null and outcome <> 'cancelled'
group by queue

-- Returns the mean seconds from claim to end, by queue, over the newest finished jobs of all queues, and the number of
-- these jobs. Cancelled jobs do not count.
-- $1 integer how many finished jobs to read
select d.queue, avg(extract(epoch from d.finished_at - d.claimed_at))::double precision, count(*)
from (
    select queue, outcome, claimed_at, finished_at from sluice.done order by id desc, generation desc limit $1::integer
) d
where d.claimed_at is not null and d.outcome <> 'cancelled'
group by d.queue

-- How long jobs ran from their claim to their end, by queue: the mean of the newest of all, and how many those are.
-- $1 integer how many to look at
select d.queue, avg(extract(epoch from d.finished_at - d.claimed_at))::double precision, count(*)
from (
    select queue, outcome, claimed_at, finished_at from sluice.done order by id desc, generation desc limit $1::integer
) d
where d.claimed_at is not null and d.outcome <> 'cancelled'
group by d.queue

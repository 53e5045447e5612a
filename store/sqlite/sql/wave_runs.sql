-- How many microseconds jobs ran from their claim to their end, by queue: the mean of the newest of all, and how many
-- those are.
-- ?1 how many to look at
select queue, avg(finished_at - claimed_at), count(*)
from (select queue, outcome, claimed_at, finished_at from sluice_done order by seq desc, generation desc limit ?1 + 0)
where claimed_at is not null and outcome <> 'cancelled'
group by queue

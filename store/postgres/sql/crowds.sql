-- Counts the workers of each queue that has more workers than a limit, by their heartbeats of the last 30 s.
-- $1 integer the limit
select q, count(*)::integer
from sluice.holder, unnest(queues) q
where role = 'worker' and seen > now() - interval '30 s'
group by q
having count(*) > $1::integer

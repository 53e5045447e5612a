-- Counts the workers of each queue that more than a few workers serve, by their latest heartbeats.
-- $1 integer a few
select q, count(*)::integer
from sluice.holder, unnest(queues) q
where role = 'worker' and seen > now() - interval '30 s'
group by q
having count(*) > $1::integer

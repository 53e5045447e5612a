-- How many workers that beat lately serve each queue that more than a few do.
-- $1 integer a few
select q, count(*)::integer
from sluice.holder, unnest(queues) q
where role = 'worker' and seen > now() - interval '30 s'
group by q
having count(*) > $1::integer

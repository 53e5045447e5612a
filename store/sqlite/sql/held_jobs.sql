-- Lists the claimed jobs of processes, by queue, and in a queue the longest claimed first.
-- ?1 holders as a JSON array   ?2 at most
select j.id, l.queue, l.holder, l.claimed_at, l.lease_until
from sluice_live l
join sluice_job j on j.seq = l.seq
where l.state = 'claimed' and l.holder in (select value from json_each(?1))
order by l.queue, l.claimed_at, j.id
limit ?2 + 0

-- Lists the claimed jobs of processes, by queue, and in a queue the longest claimed first.
-- $1 text[] holders   $2 integer at most
select l.id, l.queue, l.holder, l.claimed_at, l.lease_until
from sluice.live l
where l.state = 'claimed' and l.holder = any ($1::text[])
order by l.queue, l.claimed_at, l.id
limit $2::integer

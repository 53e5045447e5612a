-- Lists claims of a queue whose lease ran out, the longest ago first. The statement skips claims with an intended run,
-- because only the engine knows about the run.
-- ?1 queue   ?2 now, by the steady clock   ?3 limit
select j.id
from sluice_live l
join sluice_job j on j.seq = l.seq
where l.state = 'claimed' and l.lease_until < ?2 and l.queue = ?1 and l.engine is null
order by l.lease_until, l.seq
limit ?3 + 0

-- Lists queued jobs whose expires_at has passed.
-- ?1 now   ?2 limit
select j.id
from sluice_live l
join sluice_job j on j.seq = l.seq
where l.expires_at <= ?1 and l.state = 'queued'
order by l.expires_at
limit ?2 + 0

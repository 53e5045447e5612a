-- Counts the queued jobs of a slice by tenant. The statement reads the whole slice.
-- $1 uuid after   $2 uuid up to; null: to the end
select l.queue, l.tenant, count(*)
from sluice.live l
where l.state = 'queued' and l.id > $1::uuid and ($2::uuid is null or l.id <= $2::uuid)
group by l.queue, l.tenant

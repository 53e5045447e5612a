-- Counts the jobs of a batch one by one.
-- $1 uuid id
select count(*) filter (where l.id is not null), count(*) filter (where l.id is null), count(*) filter (where l.id is null and d.outcome = 'completed'),
       count(*) filter (where l.id is null and d.outcome = 'dead'), count(*) filter (where l.id is null and d.outcome = 'cancelled')
from sluice.job j
left join sluice.live l on l.id = j.id
left join sluice.done d on d.id = j.id and d.requeued_at is null and l.id is null
where j.batch_id = $1::uuid

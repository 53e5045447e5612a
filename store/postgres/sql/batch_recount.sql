-- Counts the jobs of a batch one by one.
-- $1 uuid id
select count(l.there), count(*) filter (where l.there is null), count(*) filter (where d.outcome = 'completed'), count(*) filter (where d.outcome = 'dead'),
       count(*) filter (where d.outcome = 'cancelled')
from sluice.job j
left join lateral (select true as there from sluice.live w where w.id = j.id offset 0) l on true
left join lateral (
    select w.outcome from sluice.done w where w.id = j.id and l.there is null order by w.generation desc limit 1
) d on true
where j.batch_id = $1::uuid

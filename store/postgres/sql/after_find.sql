-- Finds the stored jobs among the jobs that others are to run after, and whether each has completed.
-- $1 uuid[] ids
select j.id, coalesce(d.outcome = 'completed', false)
from sluice.job j
left join lateral (select w.id from sluice.live w where w.id = j.id offset 0) l on true
left join lateral (
    select d.outcome from sluice.done d where d.id = j.id and l.id is null order by d.generation desc limit 1
) d on true
where j.id = any ($1::uuid[])

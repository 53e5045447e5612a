-- Notes what requeued jobs wait for again: what is unfinished of that which they are to run after. What an earlier life
-- waited for, and has ended since, is forgotten.
-- $1 uuid[] ids
with forgotten as (
    delete from sluice.job_after a
    where a.job_id = any ($1::uuid[]) and (select true from sluice.live l where l.id = a.after_id) is null
)
insert into sluice.job_after (after_id, job_id)
select l.id, w.id
from sluice.job w
cross join lateral unnest(w.after) as g(id)
cross join lateral (select w.id from sluice.live w where w.id = g.id offset 0) l
where w.id = any ($1::uuid[]) and l.id <> w.id
on conflict do nothing

-- Notes what requeued jobs wait for again: what is unfinished of that which they are to run after. What an earlier life
-- waited for, and has ended since, is forgotten. Whoever deletes these rows locks them in the order of their jobs.
-- $1 uuid[] ids
with forgotten as (
    delete from sluice.job_after
    where ctid = any (array(
        select a.ctid from sluice.job_after a
        where a.job_id = any ($1::uuid[]) and (select true from sluice.live l where l.id = a.after_id) is null
        order by a.job_id, a.after_id
        for update
    ))
)
insert into sluice.job_after (after_id, job_id, rule)
select l.id, w.id,
       case when w.after_failure like '% %'
           then coalesce(substring(w.after_failure from l.id::text || '=(cancel|run|wait)'), split_part(w.after_failure, ' ', 1))
           else w.after_failure end
from sluice.job w
cross join lateral unnest(w.after) as g(id)
cross join lateral (select w.id from sluice.live w where w.id = g.id offset 0) l
where w.id = any ($1::uuid[]) and l.id <> w.id
on conflict do nothing

-- Records again the unfinished jobs that requeued jobs must run after, and deletes the rows of jobs that have ended
-- since the earlier life. Every transaction that deletes from job_after locks its rows in the order of job_id, then
-- after_id.
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

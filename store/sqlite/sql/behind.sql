-- Lists some jobs that run after a job, or wait for it now. They go along the primary key of sluice_after and along the
-- index sluice_live_blocked.
-- ?1 id   ?2 limit
select id
from (
    select id from (select j.id from sluice_after a cross join sluice_job j on j.seq = a.seq where a.after_id = ?1 limit ?2 + 0)
    union
    select id from (select j.id from sluice_job p cross join sluice_live w on w.blocked_by = p.seq cross join sluice_job j on j.seq = w.seq
                    where p.id = ?1 and w.seq <> p.seq limit ?2 + 0)
)
order by id
limit ?2 + 0

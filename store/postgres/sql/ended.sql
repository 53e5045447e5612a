-- Returns how the jobs of a list ended. An unfinished job gives no row; a job that is not stored gives a row without an
-- outcome.
-- $1 uuid[] ids
select g.id, d.outcome, d.result, d.error, d.finished_at
from unnest($1::uuid[]) as g(id)
left join lateral (select true as there from sluice.live l where l.id = g.id offset 0) l on true
left join lateral (
    select d.outcome, d.result, d.error, d.finished_at from sluice.done d where d.id = g.id order by d.generation desc limit 1
) d on true
where l.there is null

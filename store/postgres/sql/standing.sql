-- Reads the states of jobs that a move did not change, and the token of the claim that led to each state. A job that is
-- not stored gives no row.
-- $1 uuid[] ids
select j.id, j.queue, coalesce(l.state, d.outcome), coalesce(l.generation, d.generation), case when l.id is null then d.token else l.token end
from unnest($1::uuid[]) as g(id)
cross join lateral (select w.id, w.queue from sluice.job w where w.id = g.id offset 0) j
left join lateral (select w.id, w.state, w.generation, w.token from sluice.live w where w.id = j.id offset 0) l on true
left join lateral (
    select d.outcome, d.generation, d.token from sluice.done d where d.id = j.id order by d.generation desc limit 1
) d on true

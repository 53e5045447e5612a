-- Where jobs stand that a move did not find: whether they exist, in which state, and by which token
-- they came there.
-- $1 uuid[] ids
select j.id, j.queue, coalesce(l.state, d.outcome), coalesce(l.generation, d.generation), case when l.id is null then d.token else l.token end
from unnest($1::uuid[]) as g(id)
join sluice.job j on j.id = g.id
left join sluice.live l on l.id = j.id
left join lateral (
    select d.outcome, d.generation, d.token from sluice.done d where d.id = j.id order by d.generation desc limit 1
) d on true

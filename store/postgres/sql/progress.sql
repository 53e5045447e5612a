-- Reads the progress reports of jobs whose attempt goes on. A report of an earlier attempt does not count.
-- $1 uuid[] ids
select p.id, p.fraction, p.message, p.reported_at
from unnest($1::uuid[]) as g(id)
cross join lateral (select w.* from sluice.progress w where w.id = g.id offset 0) p
cross join lateral (select w.claimed_at, w.state from sluice.live w where w.id = g.id offset 0) l
where l.claimed_at = p.claimed_at and l.state = 'claimed'

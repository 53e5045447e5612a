-- Returns when parked jobs of a queue may get room (-infinity: a change waits for a claim; null: no jobs are parked).
-- $1 text queue   $2 text[] names of the limits
select case when bool_or(c.told) and min(l.wake_at) is not null then '-infinity' else min(l.wake_at) end
from unnest($2::text[]) as n(name)
left join lateral (
    select w.wake_at from sluice.limit_lane w where w.queue = $1::text and w.name = n.name order by w.wake_at limit 1
) l on true
cross join lateral (select exists (select from sluice.limit_change h where h.name = n.name) as told) c

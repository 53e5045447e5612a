-- Finds the last unfinished job of each order key. The caller has locked the order keys.
-- $1 text[] queues   $2 text[] order keys
select g.queue, g.order_key, last.id
from unnest($1::text[], $2::text[]) as g(queue, order_key)
cross join lateral (
    select l.id from sluice.live l
    where l.queue = g.queue and l.order_key = g.order_key
    order by l.order_place desc
    limit 1
) last

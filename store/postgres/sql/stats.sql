-- Lists the buckets of a kind, and the counts of holders that upkeep has not added up yet. A row of such counts has
-- every_s = null, and its body in the column tenants. In other rows the column has all tenants or one tenant, if asked
-- for.
-- $1 integer every_s   $2 timestamptz from   $3 timestamptz to   $4 text[] queues, null: all   $5 text tenant; empty: none
-- $6 boolean whether all tenants   $7 integer limit; null: none   $8 timestamptz to, for counts not added up yet
-- $9 boolean whether also buckets with nothing but a level
(select s.every_s, s.at, s.queue, s.enqueued, s.requeued, s.claimed, s.dispatched, s.completed, s.dead, s.cancelled, s.uncertain,
        s.failed, s.released, s.recovered, s.start_failed, s.wait, s.run, s.total, s.level,
        case when $6::boolean then s.tenants when $5::text <> '' then (s.tenants::json -> $5::text)::text else '' end
 from sluice.stat s
 where s.every_s = $1::integer and s.at >= $2::timestamptz and s.at < $3::timestamptz and ($4::text[] is null or s.queue = any ($4::text[]))
   and ($9::boolean or s.enqueued + s.requeued + s.claimed + s.dispatched + s.completed + s.dead + s.cancelled + s.uncertain + s.failed
        + s.released + s.recovered + s.start_failed > 0)
 order by s.at, s.queue
 limit $7::integer)
union all
select null, p.at, p.queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', p.body
from sluice.stat_part p
where p.at >= $2::timestamptz and p.at < $8::timestamptz and ($4::text[] is null or p.queue = any ($4::text[]))

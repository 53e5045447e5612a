-- Reads some stored buckets.
-- $1 integer[] every_s   $2 timestamptz[] at   $3 text[] queues
select s.every_s, s.at, s.queue, s.enqueued, s.requeued, s.claimed, s.dispatched, s.completed, s.dead, s.cancelled, s.uncertain,
       s.failed, s.released, s.recovered, s.start_failed, s.wait, s.run, s.total, s.level, s.tenants
from unnest($1::integer[], $2::timestamptz[], $3::text[]) as k(every_s, at, queue)
cross join lateral (select * from sluice.stat t where t.every_s = k.every_s and t.at = k.at and t.queue = k.queue offset 0) s

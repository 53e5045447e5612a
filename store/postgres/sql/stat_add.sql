-- Stores the counts of a holder for a bucket, by queue.
-- $1 timestamptz bucket   $2 text holder   $3 text[] queues   $4 text[] bodies
insert into sluice.stat_part (at, queue, holder, body)
select $1::timestamptz, added.queue, $2::text, added.body
from unnest($3::text[], $4::text[]) as added(queue, body)
on conflict (at, queue, holder) do nothing

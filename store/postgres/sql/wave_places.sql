-- Counts the jobs of a slice by queue and place: -1 due, -2 in flight, -3 blocked, -4 later than the count by minutes,
-- otherwise the minute since 1970 in which they are due. One statement reads the whole slice, so that it cannot find a
-- job twice that is claimed meanwhile.
-- $1 timestamptz now   $2 timestamptz until   $3 uuid after   $4 uuid up to; null: to the end
select l.queue,
       case when l.state <> 'queued' then -2 when l.blocked_by is not null then -3
            when l.due_at <= $1::timestamptz then -1 when l.due_at >= $2::timestamptz then -4
            else floor(date_part('epoch', l.due_at) / 60)::bigint end as place,
       count(*)
from sluice.live l
where l.state <> 'uncertain' and l.id > $3::uuid and ($4::uuid is null or l.id <= $4::uuid)
group by l.queue, place

-- Lists a slice of the unfinished jobs with the place of each: -1 due, -2 in flight, -3 blocked, -4 later than the
-- count by minutes, otherwise the minute since 1970 in which it is due; null: not counted.
-- ?1 now   ?2 until   ?3 seq after   ?4 limit
select seq, queue, tenant,
       case when state in ('claimed', 'dispatched') then -2
            when state <> 'queued' then null
            when blocked_by is not null then -3
            when due_at <= ?1 then -1
            when due_at >= ?2 then -4
            else due_at / 60000000 end
from sluice_live
where seq > ?3
order by seq
limit ?4 + 0

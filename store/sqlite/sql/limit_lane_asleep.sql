-- Returns until when claims do not look at the parked jobs of a limit key, and the place of the first of them. No row: a
-- claim may look now. An expired job keeps none behind it, nor does one that is not due.
-- ?1 queue   ?2 key   ?3 now   ?4 until when the jobs that are claimed are due
select k.wake_at, l.priority, l.due_at, l.seq
from sluice_limit_lane k
join sluice_live l on l.queue = ?1 and l.limit_key = ?2 and l.parked and l.due_at <= ?4 and (l.expires_at is null or l.expires_at > max(?3, l.due_at))
where k.key = ?2 and k.queue = ?1 and k.wake_at > ?3
order by l.priority, l.due_at, l.seq
limit 1

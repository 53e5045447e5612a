-- Counts the parked jobs of a limit key in the queues that share a limit, up to a maximum.
-- ?1 name of the limit   ?2 key   ?3 maximum
select count(*)
from (
    select 1
    from sluice_queue q
    cross join sluice_live w on w.queue = q.name and w.limit_key = ?2 and w.parked
    where q.limits <> '' and instr(',' || q.limits || ',', ',' || ?1 || ',') > 0
    limit ?3 + 0
)

-- How many parked jobs a limit key has in the queues that share a limit, up to a figure.
-- ?1 name of the limit   ?2 key   ?3 figure
select count(*)
from (
    select 1
    from sluice_queue q
    cross join sluice_live w on w.queue = q.name and w.limit_key = ?2 and w.parked
    where q.limits <> '' and instr(',' || q.limits || ',', ',' || ?1 || ',') > 0
    limit ?3 + 0
)

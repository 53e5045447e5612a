-- Counts the jobs in flight in the queues that share a limit, up to a maximum for each queue and state; see
-- in_flight.sql.
-- ?1 name of the limit   ?2 maximum
select coalesce(sum(
    (select count(*) from (select 1 from sluice_live where queue = q.name and state = 'claimed' limit ?2 + 0))
    + (select count(*) from (select 1 from sluice_live where queue = q.name and state in ('dispatched', 'uncertain') and state = 'dispatched' limit ?2 + 0))
    + (select count(*) from (select 1 from sluice_orphan_run where queue = q.name limit ?2 + 0))
), 0)
from sluice_queue q
where q.limits <> '' and instr(',' || q.limits || ',', ',' || ?1 || ',') > 0

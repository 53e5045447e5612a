-- Counts the units in flight in the queues that share a limit, for a limit key, including orphan runs. The empty key
-- stands for all jobs. It also returns the tokens of the rate. The statement walks along the indexes
-- sluice_live_limit_key or sluice_live_claimed, and sluice_orphan_run_limit_key or sluice_orphan_run_held.
-- ?1 name of the limit   ?2 key   ?3 whether to count costs instead of jobs   ?4 the most jobs to read
with sharing as materialized (
    select name from sluice_queue where limits <> '' and instr(',' || limits || ',', ',' || ?1 || ',') > 0
)
select (select coalesce(sum(iif(?3, cost, 1)), 0) from (select l.cost from sluice_live l where l.limit_key = ?2 and l.limit_key is not null
            and l.state in ('claimed', 'dispatched') and l.queue in (select name from sharing) limit ?4 + 0))
       + (select coalesce(sum(iif(?3, cost, 1)), 0) from (
            select l.cost from sharing q cross join sluice_live l on l.queue = q.name and l.state = 'claimed' where ?2 = ''
            union all
            select l.cost from sharing q cross join sluice_live l on l.queue = q.name and l.state in ('dispatched', 'uncertain') and l.state = 'dispatched' where ?2 = ''
            limit ?4 + 0))
       + (select coalesce(sum(iif(?3, cost, 1)), 0) from (
            select r.cost from sharing q cross join sluice_orphan_run r on r.queue = q.name and r.limit_key = ?2 where ?2 <> ''
            union all
            select r.cost from sharing q cross join sluice_orphan_run r on r.queue = q.name where ?2 = ''
            limit ?4 + 0)),
       k.tokens, k.filled_at, k.closed_until
from (select 1) one
left join sluice_limit_key k on k.name = ?1 and k.key = ?2

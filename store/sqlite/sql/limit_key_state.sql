-- How many jobs of a limit key are in flight in the queues that share a limit, up to a figure, with their orphan runs, and
-- what claims have left of its rate. Walks along the indexes sluice_live_limit_key and sluice_orphan_run_held.
-- ?1 name of the limit   ?2 key   ?3 figure
with sharing as materialized (
    select name from sluice_queue where limits <> '' and instr(',' || limits || ',', ',' || ?1 || ',') > 0
)
select (select count(*) from (select 1 from sluice_live l where l.limit_key = ?2 and l.limit_key is not null and l.state in ('claimed', 'dispatched')
            and l.queue in (select name from sharing) limit ?3 + 0))
       + (select count(*) from (select 1 from sharing q cross join sluice_orphan_run r on r.queue = q.name cross join sluice_job j on j.id = r.job_id
            where j.limit_key = ?2 limit ?3 + 0)),
       k.tokens, k.filled_at, k.closed_until
from (select 1) one
left join sluice_limit_key k on k.name = ?1 and k.key = ?2

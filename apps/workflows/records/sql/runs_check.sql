-- Counts what contradicts that each execution ran once: completed executions without a run, executions with several,
-- and failed ones that have one.
select count(case when state = 'completed' and runs = 0 then 1 end),
    count(case when runs > 1 then 1 end),
    count(case when state = 'failed' and runs > 0 then 1 end)
from (select e.state, (select count(*) from workflow_runs r where r.execution_id = e.id) as runs from workflow_executions e) x

-- Counts the executions by plan and state, those of one workspace apart.
-- $1 the workspace that is counted apart
select coalesce(w.plan, ''), case when e.workspace_id = $1 then 1 else 0 end, e.state, count(*)
from workflow_executions e left join workspaces w on w.id = e.workspace_id
group by 1, 2, 3

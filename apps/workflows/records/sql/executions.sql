-- Lists executions, the newest first: those of a workspace, or one.
-- $1 workspace, empty: of all, $2 id, empty: all, $3 at most so many
select id, workspace_id, definition_id, version, variables, state, run_id, error, created_at, started_at, ended_at
from workflow_executions
where ($1 = '' or workspace_id = $1) and ($2 = '' or id = $2)
order by created_at desc, id desc
limit $3

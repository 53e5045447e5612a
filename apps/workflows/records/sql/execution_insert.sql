-- Stores an execution that waits, unless it is there.
-- $1 id, $2 workspace, $3 definition, $4 version, $5 variables, $6 now
insert into workflow_executions
    (id, workspace_id, definition_id, version, variables, state, run_id, error, created_at, started_at, ended_at)
values ($1, $2, $3, $4, $5, 'waiting', '', '', $6, 0, 0)
on conflict (id) do nothing

-- Says whose each execution is.
select id, workspace_id from workflow_executions

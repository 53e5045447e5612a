-- Notes that an execution failed before it began, because what it needs is gone.
-- $1 id, $2 run, $3 error, $4 now
update workflow_executions set state = 'failed', run_id = $2, error = $3, ended_at = $4
where id = $1

-- Notes that a run of an execution has begun, once for each run. A run that begins after its job has ended changes nothing.
-- $1 id, $2 run, $3 now
update workflow_executions set state = 'running', run_id = $2, error = '', started_at = $3
where id = $1 and run_id <> $2 and state in ('waiting', 'running')

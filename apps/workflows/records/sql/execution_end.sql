-- Notes that the present run of an execution has ended.
-- $1 id, $2 run, $3 state, $4 error, $5 now
update workflow_executions set state = $3, error = $4, ended_at = $5
where id = $1 and run_id = $2 and state = 'running'

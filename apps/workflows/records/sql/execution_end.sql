-- Notes why the present run of an execution failed. That the execution has ended is told by the end of its job.
-- $1 id, $2 run, $3 error
update workflow_executions set error = $3
where id = $1 and run_id = $2 and state = 'running'

-- Notes why an execution cannot begin: what it needs is gone. That it has failed is told by the end of its job.
-- $1 id, $2 run, $3 error
update workflow_executions set run_id = $2, error = $3
where id = $1 and state in ('waiting', 'running')

-- Lists the steps of a run, in order.
-- $1 execution, $2 run
select number, node, kind, result, ended_at from workflow_steps where execution_id = $1 and run_id = $2 order by number

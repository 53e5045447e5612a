-- Notes a run, once.
-- $1 execution, $2 run, $3 now
insert into workflow_runs (execution_id, run_id, started_at) values ($1, $2, $3)
on conflict (execution_id, run_id) do nothing

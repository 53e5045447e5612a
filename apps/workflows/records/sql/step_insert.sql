-- Keeps what a node gave, once.
-- $1 execution, $2 run, $3 number, $4 node, $5 kind, $6 result, $7 when it was done
insert into workflow_steps (execution_id, run_id, number, node, kind, result, ended_at) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (execution_id, run_id, number) do nothing

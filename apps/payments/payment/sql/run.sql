-- Notes that a run executes a payment; once, however often its activity is tried.
-- $1 payment   $2 workflow   $3 run   $4 now
insert into payment_run (payment_id, workflow_id, run_id, executed_at)
values ($1, $2, $3, $4)
on conflict do nothing

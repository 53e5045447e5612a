-- The lists of a job's columns, each in this one place. In a statement, {{j.job}} stands for the columns of the list job, each
-- after `j.`, and {{job}} for the bare names.

-- Lookups read these columns of the table sluice_job first.
job: id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at

-- Lookups read these columns of sluice_live or sluice_done after the state.
life: generation, due_at, attempts, releases, recoveries, holder, claimed_at, dispatched_at

-- Claims and lookups read these columns of the table sluice_job last. Add a new column of a job at its end, and to jobRest in
-- columns.go.
more: order_key, after, after_failure, timeout_ms, batch_id, limit_key, cost

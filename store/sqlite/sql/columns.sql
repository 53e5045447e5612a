-- The lists of a job's columns, each in this one place. In a statement, {{j.job}} stands for the columns of the list job, each
-- after `j.`, and {{job}} for the bare names.

-- What lookups read of the table sluice_job first.
job: id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at

-- What lookups read after the state, of sluice_live and of sluice_done.
life: generation, due_at, attempts, releases, recoveries, holder, claimed_at, dispatched_at

-- What claims and lookups read of the table sluice_job last. Add a new column of a job at its end, and to jobRest in
-- columns.go.
more: order_key, after, after_failure, timeout_ms, batch_id, limit_key, cost

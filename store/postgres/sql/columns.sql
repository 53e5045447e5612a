-- The lists of a job's columns, each in this one place. In a statement, {{j.job}} stands for the columns of the list job, each
-- after `j.`, and {{job}} for the bare names. The types are those that the SQL function claim declares.

-- Lookups read these columns of the table job first.
job: id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at

-- Lookups read these columns of live or done after the state.
life: generation, due_at, attempts, releases, recoveries, holder, claimed_at, dispatched_at

-- Claims read these columns of live.
claimed: id uuid, priority smallint, due_at timestamptz, generation integer, attempts integer, releases integer,
         recoveries integer, claimed_at timestamptz, lease_until timestamptz, error text, checkpoint bytea, tenant text,
         expires_at timestamptz

-- Claims read these columns of the table job first.
given: key text, payload bytea, labels jsonb, max_attempts smallint, created_at timestamptz

-- Claims and lookups read these columns of the table job last. Add a new column of a job at its end, and to jobRest in columns.go.
more: order_key text, after uuid[], after_failure text, timeout_ms bigint, batch_id uuid, limit_key text, cost integer

-- The lists of a job's columns, each in this one place. In a statement, {{j.job}} stands for the columns of the list job, each
-- after `j.`, and {{job}} for the bare names. The types are those that the SQL function claim declares.

-- What lookups read of the table job first.
job: id, queue, tenant, priority, key, labels, max_attempts, created_at, expires_at

-- What lookups read after the state, of live and of done.
life: generation, due_at, attempts, releases, recoveries, holder, claimed_at, dispatched_at

-- What claims read of live.
claimed: id uuid, priority smallint, due_at timestamptz, generation integer, attempts integer, releases integer,
         recoveries integer, claimed_at timestamptz, lease_until timestamptz, error text, checkpoint bytea, tenant text,
         expires_at timestamptz

-- What claims read of the table job first.
given: key text, payload bytea, labels jsonb, max_attempts smallint, created_at timestamptz

-- What claims and lookups read of the table job last. Add a new column of a job at its end, and to jobRest in columns.go.
more: order_key text, after uuid[], after_failure text, timeout_ms bigint, batch_id uuid, limit_key text, cost integer

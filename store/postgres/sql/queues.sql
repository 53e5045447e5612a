-- Lists queues with their settings, by name. PostgreSQL plans the statement for its arguments at each call. For a few
-- names, the program derives another statement from this text, whose plan is kept. The settings have the order of
-- sluice.StoredSettings.
-- $1 text[] names, null: all   $2 text[] engines, null: all   $3 text after this name   $4 integer limit, 0: none
-- $5 boolean only queues with an engine, or with jobs at an engine   $6 boolean groups too, if no names are given
select name, version, changed_at, changed_by, reason, clock_timestamp(), recorded::text, scheduled::text,
       q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0 or exists (select from sluice.tenant_limit t where t.queue in (q.name, '') and t.given),
       paused, lease_ms, timeout_ms, max_attempts, max_recoveries, backoff_base_ms, backoff_factor, backoff_max_ms,
       backoff_jitter_ms, backoff_full_jitter, recover_interval_ms, recover_batch, keep_completed_ms,
       keep_cancelled_ms, keep_dead_ms, payload_limit, payload_schema, audit, rate, burst,
       concurrency, paused_until, ageing, fair, tenant_concurrency, tenant_rate, tenant_burst, batch, interval_ms, claim_ahead_ms, jitter_ms,
       engine, run_namespace, run_type, run_task_queue, run_timeout_ms, run_ref, run_results, retry_runs, follow_interval_ms,
       max_waiting, tenant_max_waiting, shed, limits, keep_results_ms, rate_per_ms,
       tenant_rate_per_ms
from sluice.queue q
where q.name > $3::text and ($1::text[] is null or q.name = any($1::text[])) and ($2::text[] is null or q.engine = any($2::text[]))
  and ($1::text[] is not null or $6::boolean or right(q.name, 1) <> '*')
  and (not $5::boolean or q.engine <> '' or exists (
      select from sluice.live l where l.queue = q.name and l.engine is not null and l.state in ('claimed', 'dispatched')
  ))
order by name
limit nullif($4::integer, 0)

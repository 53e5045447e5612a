-- Reads one queue before a change in the same transaction. The settings have the order of sluice.StoredSettings.
-- ?1 name   ?2 now
select name, version, changed_at, changed_by, reason, ?2 as now, recorded, scheduled,
       q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0 or exists (select 1 from sluice_tenant_limit t where t.queue in (q.name, '') and t.given),
       paused, lease_ms, timeout_ms, max_attempts, max_recoveries, backoff_base_ms, backoff_factor, backoff_max_ms,
       backoff_jitter_ms, backoff_full_jitter, recover_interval_ms, recover_batch, keep_completed_ms,
       keep_cancelled_ms, keep_dead_ms, payload_limit, payload_schema, audit, rate, burst,
       concurrency, paused_until, ageing, fair, tenant_concurrency, tenant_rate, tenant_burst, batch, interval_ms, claim_ahead_ms, jitter_ms,
       engine, run_namespace, run_type, run_task_queue, run_timeout_ms, run_ref, run_results, retry_runs, follow_interval_ms,
       max_waiting, tenant_max_waiting, shed, limits, keep_results_ms, rate_per_ms,
       tenant_rate_per_ms
from sluice_queue q
where name = ?1

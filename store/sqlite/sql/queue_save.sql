-- Stores the settings of a queue, whose version was read in the same transaction. The settings have the order of
-- sluice.StoredSettings.
-- ?1 name   ?2 version   ?3 now   ?4 actor   ?5 reason   ?6 … the settings
insert into sluice_queue (name, version, changed_at, changed_by, reason,
       paused, lease_ms, timeout_ms, max_attempts, max_recoveries, backoff_base_ms, backoff_factor, backoff_max_ms,
       backoff_jitter_ms, backoff_full_jitter, recover_interval_ms, recover_batch, keep_completed_ms,
       keep_cancelled_ms, keep_dead_ms, payload_limit, payload_schema, audit, rate, burst,
       concurrency, paused_until, ageing, fair, tenant_concurrency, tenant_rate, tenant_burst, batch, interval_ms, claim_ahead_ms, jitter_ms,
       engine, run_namespace, run_type, run_task_queue, run_timeout_ms, run_ref, run_results, retry_runs, follow_interval_ms,
       max_waiting, tenant_max_waiting, shed, limits, keep_results_ms, rate_per_ms,
       tenant_rate_per_ms)
values (?1, ?2, ?3, ?4, ?5,
       ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28,
       ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51, ?52)
on conflict (name) do update
set version = excluded.version, changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason,
    paused = excluded.paused, lease_ms = excluded.lease_ms, timeout_ms = excluded.timeout_ms,
    max_attempts = excluded.max_attempts, max_recoveries = excluded.max_recoveries,
    backoff_base_ms = excluded.backoff_base_ms, backoff_factor = excluded.backoff_factor,
    backoff_max_ms = excluded.backoff_max_ms, backoff_jitter_ms = excluded.backoff_jitter_ms,
    backoff_full_jitter = excluded.backoff_full_jitter, recover_interval_ms = excluded.recover_interval_ms,
    recover_batch = excluded.recover_batch, keep_completed_ms = excluded.keep_completed_ms,
    keep_cancelled_ms = excluded.keep_cancelled_ms, keep_dead_ms = excluded.keep_dead_ms,
    payload_limit = excluded.payload_limit, payload_schema = excluded.payload_schema, audit = excluded.audit,
    rate = excluded.rate, burst = excluded.burst, concurrency = excluded.concurrency,
    paused_until = excluded.paused_until, ageing = excluded.ageing, fair = excluded.fair,
    tenant_concurrency = excluded.tenant_concurrency, tenant_rate = excluded.tenant_rate, tenant_burst = excluded.tenant_burst,
    batch = excluded.batch, interval_ms = excluded.interval_ms, claim_ahead_ms = excluded.claim_ahead_ms, jitter_ms = excluded.jitter_ms,
    engine = excluded.engine, run_namespace = excluded.run_namespace, run_type = excluded.run_type,
    run_task_queue = excluded.run_task_queue, run_timeout_ms = excluded.run_timeout_ms, run_ref = excluded.run_ref,
    run_results = excluded.run_results, retry_runs = excluded.retry_runs, follow_interval_ms = excluded.follow_interval_ms,
    max_waiting = excluded.max_waiting, tenant_max_waiting = excluded.tenant_max_waiting, shed = excluded.shed, limits = excluded.limits,
    keep_results_ms = excluded.keep_results_ms,
    rate_per_ms = excluded.rate_per_ms, tenant_rate_per_ms = excluded.tenant_rate_per_ms

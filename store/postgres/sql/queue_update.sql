-- Changes the settings of a queue. The settings have the order of sluice.StoredSettings.
-- $1 text name   $2 text by whom   $3 text reason   $4 … the settings
update sluice.queue
set version = version + 1, changed_at = now(), changed_by = $2::text, reason = $3::text,
    paused = $4::boolean, lease_ms = $5::bigint, timeout_ms = $6::bigint, max_attempts = $7::bigint,
    max_recoveries = $8::bigint, backoff_base_ms = $9::bigint, backoff_factor = $10::double precision,
    backoff_max_ms = $11::bigint, backoff_jitter_ms = $12::bigint, backoff_full_jitter = $13::boolean,
    recover_interval_ms = $14::bigint, recover_batch = $15::bigint, keep_completed_ms = $16::bigint,
    keep_cancelled_ms = $17::bigint, keep_dead_ms = $18::bigint, payload_limit = $19::bigint,
    payload_schema = $20::text, audit = $21::text, rate = $22::double precision, burst = $23::bigint,
    concurrency = $24::bigint, paused_until = $25::timestamptz, ageing = $26::double precision,
    fair = $27::boolean, tenant_concurrency = $28::bigint, tenant_rate = $29::double precision, tenant_burst = $30::bigint,
    batch = $31::bigint, interval_ms = $32::bigint, claim_ahead_ms = $33::bigint, jitter_ms = $34::bigint,
    engine = $35::text, run_namespace = $36::text, run_type = $37::text, run_task_queue = $38::text,
    run_timeout_ms = $39::bigint, run_ref = $40::text, run_results = $41::boolean, retry_runs = $42::boolean, follow_interval_ms = $43::bigint,
    max_waiting = $44::bigint, tenant_max_waiting = $45::bigint, shed = $46::boolean, limits = $47::text,
    keep_results_ms = $48::bigint, rate_per_ms = $49::bigint, tenant_rate_per_ms = $50::bigint
where name = $1::text
returning changed_at

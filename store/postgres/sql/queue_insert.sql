-- Stores the queues of a list that are new. The settings have the order of sluice.StoredSettings.
-- $1 text[] names   $2 text by whom   $3 text reason   $4 … the settings
insert into sluice.queue (name, changed_by, reason,
       paused, lease_ms, timeout_ms, max_attempts, max_recoveries, backoff_base_ms, backoff_factor, backoff_max_ms,
       backoff_jitter_ms, backoff_full_jitter, recover_interval_ms, recover_batch, keep_completed_ms,
       keep_cancelled_ms, keep_dead_ms, payload_limit, payload_schema, audit, rate, burst,
       concurrency, paused_until, ageing, fair, tenant_concurrency, tenant_rate, tenant_burst, batch, interval_ms, claim_ahead_ms, jitter_ms,
       engine, run_namespace, run_type, run_task_queue, run_timeout_ms, run_ref, run_results, retry_runs, follow_interval_ms,
       max_waiting, tenant_max_waiting, shed, limits, keep_results_ms, rate_per_ms,
       tenant_rate_per_ms)
select fresh, $2::text, $3::text,
       $4::boolean, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::double precision, $11::bigint,
       $12::bigint, $13::boolean, $14::bigint, $15::bigint, $16::bigint, $17::bigint, $18::bigint, $19::bigint,
       $20::text, $21::text, $22::double precision, $23::bigint, $24::bigint, $25::timestamptz, $26::double precision,
       $27::boolean, $28::bigint, $29::double precision, $30::bigint, $31::bigint, $32::bigint, $33::bigint, $34::bigint,
       $35::text, $36::text, $37::text, $38::text, $39::bigint, $40::text, $41::boolean, $42::boolean, $43::bigint, $44::bigint,
       $45::bigint, $46::boolean, $47::text, $48::bigint, $49::bigint, $50::bigint
from unnest($1::text[]) fresh
order by fresh
on conflict (name) do nothing
returning name, changed_at

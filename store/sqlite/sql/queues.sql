-- Lists queues with their settings, by name. The settings have the order of sluice.StoredSettings.
-- ?1 now   ?2 names as JSON, null: all   ?3 engines as JSON, null: all   ?4 after this name   ?5 limit, -1: none
-- ?6 only queues with an engine, or with jobs at an engine   ?7 groups too, if no names are given
select name, version, changed_at, changed_by, reason, ?1 as now, recorded, scheduled,
       q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0 or exists (select 1 from sluice_tenant_limit t where t.queue in (q.name, '') and t.given),
       paused, lease_ms, timeout_ms, max_attempts, max_recoveries, backoff_base_ms, backoff_factor, backoff_max_ms,
       backoff_jitter_ms, backoff_full_jitter, recover_interval_ms, recover_batch, keep_completed_ms,
       keep_cancelled_ms, keep_dead_ms, payload_limit, payload_schema, audit, rate, burst,
       concurrency, paused_until, ageing, fair, tenant_concurrency, tenant_rate, tenant_burst, batch, interval_ms, claim_ahead_ms, jitter_ms,
       engine, run_namespace, run_type, run_task_queue, run_timeout_ms, run_ref, run_results, retry_runs, follow_interval_ms,
       max_waiting, tenant_max_waiting, shed, limits, keep_results_ms, rate_per_ms,
       tenant_rate_per_ms
from json_each(coalesce(?2, (
    select json_group_array(name) from (select name from sluice_queue where name > ?4 and (?7 or substr(name, -1) <> '*') order by name limit iif(?3 is null and not ?6, ?5, -1))
))) wanted cross join sluice_queue q on q.name = wanted.value
where q.name > ?4 and (?3 is null or q.engine in (select value from json_each(?3)))
  and (not ?6 or q.engine <> '' or exists (
      select 1 from sluice_live l where l.queue = q.name and l.engine is not null and l.state in ('claimed', 'dispatched')
  ))
order by name
limit ?5 + 0

-- Stores a rule of alerts, whose version was read in the same transaction.
-- ?1 name   ?2 queue   ?3 metric   ?4 op   ?5 threshold   ?6 rate_share   ?7 for_ms   ?8 window_ms   ?9 severity   ?10 covers   ?11 summary
-- ?12 runbook   ?13 disabled   ?14 version   ?15 now   ?16 actor   ?17 reason
insert into sluice_alert_rule (name, queue, metric, op, threshold, rate_share, for_ms, window_ms, severity, covers, summary, runbook, disabled,
    version, changed_at, changed_by, reason)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
on conflict (name, queue) do update
set metric = excluded.metric, op = excluded.op, threshold = excluded.threshold, rate_share = excluded.rate_share,
    for_ms = excluded.for_ms, window_ms = excluded.window_ms, severity = excluded.severity, covers = excluded.covers,
    summary = excluded.summary, runbook = excluded.runbook, disabled = excluded.disabled, version = excluded.version,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason

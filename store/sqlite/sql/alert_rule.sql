-- Reads one stored rule of alerts.
-- ?1 name   ?2 queue
select name, queue, metric, op, threshold, rate_share, for_ms, window_ms, severity, covers, summary, runbook, disabled, version, changed_at,
       changed_by, reason
from sluice_alert_rule
where name = ?1 and queue = ?2

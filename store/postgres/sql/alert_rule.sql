-- Reads one stored rule of alerts.
-- $1 text name   $2 text queue
select name, queue, metric, op, threshold, rate_share, for_ms, window_ms, severity, covers, summary, runbook, disabled, version, changed_at,
       changed_by, reason
from sluice.alert_rule
where name = $1::text and queue = $2::text

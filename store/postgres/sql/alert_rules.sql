-- Lists the rules of alerts that somebody stored, by name and queue.
select name, queue, metric, op, threshold, rate_share, for_ms, window_ms, severity, covers, summary, runbook, disabled, version, changed_at,
       changed_by, reason
from sluice.alert_rule
order by name collate "C", queue collate "C"

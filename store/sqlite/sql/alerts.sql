-- Lists the alerts, by rule and queue.
select rule, queue, state, since, pending_since, fired_at, resolved_at, notified, value, threshold, severity, evaluated_at, detail, version
from sluice_alert
order by rule, queue

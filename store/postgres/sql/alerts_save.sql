-- Stores each alert that nobody else has changed since it was read, and returns the stored ones.
-- $1 jsonb the alerts, in the order in which they are locked; version is the one that they get
insert into sluice.alert as a (rule, queue, state, since, pending_since, fired_at, resolved_at, notified, value, threshold, severity, evaluated_at,
    detail, version)
select n.rule, coalesce(n.queue, ''), n.state, n.since, n.pending_since, n.fired_at, n.resolved_at, n.notified, n.value, n.threshold, n.severity,
       n.at, coalesce(n.detail, ''), n.version
from jsonb_to_recordset($1::jsonb) as n(rule text, queue text, state text, since timestamptz, pending_since timestamptz,
    fired_at timestamptz, resolved_at timestamptz, notified boolean, value double precision, threshold double precision, severity text,
    at timestamptz, detail text, version bigint)
where n.version = 1 or exists (select from sluice.alert e where e.rule = n.rule and e.queue = coalesce(n.queue, ''))
on conflict (rule, queue) do update
set state = excluded.state, since = excluded.since, pending_since = excluded.pending_since, fired_at = excluded.fired_at,
    resolved_at = excluded.resolved_at, notified = excluded.notified, value = excluded.value, threshold = excluded.threshold,
    severity = excluded.severity, evaluated_at = excluded.evaluated_at, detail = excluded.detail, version = excluded.version
where a.version = excluded.version - 1
returning a.rule

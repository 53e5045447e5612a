-- Stores an alert, unless somebody else has changed it in between.
-- ?1 rule   ?2 queue   ?3 state   ?4 since   ?5 pending_since   ?6 fired_at   ?7 resolved_at   ?8 notified   ?9 value   ?10 threshold
-- ?11 severity   ?12 evaluated_at   ?13 detail   ?14 the version that it gets
insert into sluice_alert as a (rule, queue, state, since, pending_since, fired_at, resolved_at, notified, value, threshold, severity, evaluated_at,
    detail, version)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14
where ?14 = 1 or exists (select 1 from sluice_alert where rule = ?1 and queue = ?2)
on conflict (rule, queue) do update
set state = excluded.state, since = excluded.since, pending_since = excluded.pending_since, fired_at = excluded.fired_at,
    resolved_at = excluded.resolved_at, notified = excluded.notified, value = excluded.value, threshold = excluded.threshold,
    severity = excluded.severity, evaluated_at = excluded.evaluated_at, detail = excluded.detail, version = excluded.version
where a.version = excluded.version - 1

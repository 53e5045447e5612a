-- Stores a rule of alerts, unless somebody else changed it in between.
-- $1 text name   $2 text queue   $3 text metric   $4 text op   $5 double precision threshold   $6 double precision rate_share
-- $7 bigint for_ms   $8 bigint window_ms   $9 text severity   $10 text covers   $11 text summary   $12 text runbook   $13 boolean disabled
-- $14 bigint the version it was read with (0: new)   $15 text by whom   $16 text reason
insert into sluice.alert_rule as r (name, queue, metric, op, threshold, rate_share, for_ms, window_ms, severity, covers, summary, runbook,
    disabled, changed_by, reason)
select $1::text, $2::text, $3::text, $4::text, $5::double precision, $6::double precision, $7::bigint, $8::bigint, $9::text, $10::text,
       $11::text, $12::text, $13::boolean, $15::text, $16::text
where $14::bigint = 0 or exists (select from sluice.alert_rule where name = $1::text and queue = $2::text)
on conflict (name, queue) do update
set metric = excluded.metric, op = excluded.op, threshold = excluded.threshold, rate_share = excluded.rate_share,
    for_ms = excluded.for_ms, window_ms = excluded.window_ms, severity = excluded.severity, covers = excluded.covers,
    summary = excluded.summary, runbook = excluded.runbook, disabled = excluded.disabled, version = r.version + 1, changed_at = now(),
    changed_by = excluded.changed_by, reason = excluded.reason
where r.version = $14::bigint
returning changed_at

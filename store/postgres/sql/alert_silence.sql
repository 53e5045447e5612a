-- Reads a silence.
-- $1 uuid id
select id, rule, queue, created_at, until, made_by, reason from sluice.alert_silence where id = $1::uuid

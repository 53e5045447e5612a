-- Closes a limit key until an instant or opens it, makes claims notice the change, and audits the change. A key that is
-- closed for longer stays as it is. The statement returns the limit, if there is one.
-- $1 text name of the limit   $2 text key   $3 timestamptz closed_until (null: open)   $4 text by whom   $5 text reason   $6 uuid act
-- $7 text event   $8 text the key and the instant as JSON, for the audit
with known as (
    select n.name from sluice.named_limit n where n.name = $1::text
), kept as (
    insert into sluice.limit_key as k (name, key, closed_until, idle_from)
    select name, $2::text, $3::timestamptz, coalesce($3::timestamptz, now()) from known
    on conflict (name, key) do update
    set closed_until = excluded.closed_until, idle_from = greatest(k.idle_from, excluded.idle_from)
    where excluded.closed_until is null or k.closed_until is null or k.closed_until < excluded.closed_until
    returning name
), told as (
    insert into sluice.limit_change (name, key) select name, $2::text from kept
), audited as (
    insert into sluice.audit (object, name, event, actor, reason, after, act_id)
    select 'limit', name, $7::text, $4::text, $5::text, $8::text::jsonb, $6::uuid from kept
)
select name from known

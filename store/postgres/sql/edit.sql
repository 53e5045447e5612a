-- Changes the content and the place of a queued job, whose row is locked. The job leaves its tenant queue; a claim puts
-- it into a tenant queue again.
-- $1 uuid id   $2 text tenant   $3 smallint priority   $4 timestamptz due_at   $5 bytea payload   $6 text labels as JSON ('': none)
-- $7 text by whom   $8 text reason   $9 uuid act   $10 text before and $11 text after, as JSON, for the audit
-- $12 bigint timeout in ms (0: none)   $13 text limit key ('': none)   $14 integer cost (0: 1)
with moved as (
    update sluice.live
    set tenant = $2::text, priority = $3::smallint, due_at = $4::timestamptz, in_tenant_queue = false,
        limit_key = nullif($13::text, ''), cost = coalesce(nullif($14::integer, 0), 1)
    where id = $1::uuid
    returning id, queue, generation
), written as (
    update sluice.job j
    set tenant = $2::text, priority = $3::smallint, payload = $5::bytea, labels = nullif($6::text, '')::jsonb,
        timeout_ms = nullif($12::bigint, 0), limit_key = nullif($13::text, ''), cost = nullif($14::integer, 0)
    from moved m
    where j.id = m.id and j.id = $1::uuid
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id)
    select $7::text, 'job', queue, 'edit', id, generation, 'queued', 'queued', $8::text, $10::text::jsonb, $11::text::jsonb, $9::uuid
    from moved
)
select id, queue, 'queued' from moved

-- Changes the due time of queued jobs. The audit records the old due time. Jobs that would expire before they are due
-- stay as they are, and are returned with their expires_at.
-- $1 uuid[] ids, sorted   $2 timestamptz due_at (null: now)   $3 text by whom   $4 text reason   $5 uuid act
with old as materialized (
    select l.id, l.queue, l.due_at, l.expires_at from sluice.live l where l.id = any ($1::uuid[]) and l.state = 'queued' order by l.id for update
), moved as (
    update sluice.live l
    set due_at = coalesce($2::timestamptz, now()), in_tenant_queue = false
    from old o
    where l.id = o.id and l.id = any ($1::uuid[]) and (o.expires_at is null or o.expires_at > coalesce($2::timestamptz, now()))
    returning l.id, l.queue, l.generation, o.due_at as was, l.due_at
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id)
    select $3::text, 'job', queue, 'reschedule', id, generation, 'queued', 'queued', $4::text,
           jsonb_build_object('due_at', to_char(was at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')), jsonb_build_object('due_at', to_char(due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')), $5::uuid
    from moved
)
select id, queue, 'queued', null::timestamptz from moved
union all
select id, queue, 'queued', expires_at from old where expires_at <= coalesce($2::timestamptz, now())

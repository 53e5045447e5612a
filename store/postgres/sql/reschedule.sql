-- Changes when queued jobs are due.
-- $1 uuid[] ids, sorted   $2 timestamptz due_at (null: now)   $3 text by whom   $4 text reason   $5 uuid act
with moved as (
    update sluice.live
    set due_at = coalesce($2::timestamptz, now()), in_line = false
    where id = any ($1::uuid[]) and state = 'queued'
    returning id, queue, generation
), told as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, act_id)
    select $3::text, 'job', queue, 'reschedule', id, generation, 'queued', 'queued', $4::text, $5::uuid from moved
)
select id, queue, 'queued' from moved

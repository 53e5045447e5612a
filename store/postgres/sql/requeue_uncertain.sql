-- Gives uncertain jobs a new life: the next generation, due now.
-- $1 uuid[] ids, sorted   $2 text by whom   $3 text reason   $4 uuid act
with back as (
    update sluice.live
    set state = 'queued', in_tenant_queue = false, due_at = now(), expires_at = null, generation = generation + 1, attempts = 0, releases = 0,
        recoveries = 0, token = null, holder = null, claimed_at = null, dispatched_at = null, lease_until = null, ref = null, engine = null, error = null,
        checkpoint = null
    where id = any ($1::uuid[]) and coalesce(state = 'uncertain', false)
    returning id, queue, generation
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, act_id)
    select $2::text, 'job', queue, 'requeue', id, generation, 'uncertain', 'queued', $3::text, $4::uuid from back
)
select id, queue, 'queued' from back

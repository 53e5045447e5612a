-- Gives dead and cancelled jobs a new life: the next generation, due now. Their history stays. A job with an order key
-- or an `after` waits for itself until unblock.sql looks at it, in the same transaction. A job with a run that may be
-- open waits for itself until the orphan run is deleted.
-- $1 uuid[] ids, sorted   $2 text[] outcomes that the event may leave   $3 text by whom   $4 text reason   $5 uuid act
-- $6 uuid[] jobs of which a run may be open
with old as materialized (
    select d.id, d.generation, d.outcome
    from sluice.done d
    where d.id = any ($1::uuid[]) and d.outcome = any ($2::text[]) and d.requeued_at is null
      and not exists (select from sluice.live l where l.id = d.id and l.id = any ($1::uuid[]))
    order by d.id
    for update
), left_behind as (
    update sluice.done d set requeued_at = now() from old o
    where d.id = o.id and d.generation = o.generation and d.id = any ($1::uuid[])
), waiting as (
    insert into sluice.live (id, queue, tenant, priority, due_at, generation, keyed, order_key, order_place, batch_id, limit_key, cost, blocked_by)
    select j.id, j.queue, j.tenant, j.priority, now(), o.generation + 1,
           exists (select from sluice.job_key k where k.queue = j.queue and k.key = j.key and k.job_id = j.id and k.until is null),
           j.order_key, j.order_place, j.batch_id, j.limit_key, coalesce(j.cost, 1), case when j.order_key is not null or j.after is not null or j.id = any ($6::uuid[]) then j.id end
    from old o join sluice.job j on j.id = o.id
    where j.id = any ($1::uuid[])
    returning id, queue, generation, batch_id
), batch_changed as (
    insert into sluice.batch_change (batch, kind, jobs)
    select w.batch_id, o.outcome, -count(*) from waiting w join old o on o.id = w.id where w.batch_id is not null group by w.batch_id, o.outcome
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, act_id)
    select $3::text, 'job', w.queue, 'requeue', w.id, w.generation, o.outcome, 'queued', $4::text, $5::uuid
    from waiting w join old o on o.id = w.id
)
select id, queue, 'queued' from waiting

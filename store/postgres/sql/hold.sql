-- Holds queued jobs that nobody holds yet: a held job waits for itself until somebody releases it. It leaves its tenant
-- queue and waits for no limit meanwhile. The last column repeats the id if an earlier job of the same order waits for
-- the held job: that job need not wait any more.
-- $1 uuid[] ids, sorted   $2 text by whom   $3 text reason   $4 uuid act
with old as materialized (
    select l.id, l.queue, l.blocked_by from sluice.live l where l.id = any ($1::uuid[]) and l.state = 'queued' order by l.id for update
), put as (
    insert into sluice.hold (job_id, queue, reason, actor, behind)
    select o.id, o.queue, $3::text, $2::text, nullif(o.blocked_by, o.id)
    from old o
    on conflict (job_id) do nothing
    returning job_id
), moved as (
    update sluice.live l
    set blocked_by = l.id, in_tenant_queue = false, parked = false
    where l.id = any (array(select job_id from put))
    returning l.id, l.queue, l.generation, l.order_key, l.order_place
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, act_id)
    select $2::text, 'job', queue, 'hold', id, generation, 'queued', 'queued', $3::text, $4::uuid
    from moved
)
select m.id, m.queue, 'queued', (select m.id from sluice.live b
    where b.blocked_by = m.id and b.order_key = m.order_key and b.queue = m.queue and b.order_place < m.order_place limit 1)
from moved m

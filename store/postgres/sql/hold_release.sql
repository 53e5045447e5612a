-- Ends the holds of jobs. A job waits again for the job that it waited for before, if that job still lives. Otherwise
-- it waits for itself until unblock.sql looks at it, in the same transaction. A job does not wait again for a later job
-- of its order; unblock.sql decides about that one. The series has one row and makes the server expect many holds; else
-- it would compare each hold with each job.
-- $1 uuid[] ids, sorted   $2 text by whom   $3 text reason   $4 uuid act
with old as materialized (
    select l.id from sluice.live l
    where l.id = any ($1::uuid[]) and l.state = 'queued' and coalesce(l.blocked_by = l.id, false)
    order by l.id for update
), ended as (
    delete from sluice.hold h
    where h.job_id = any (array(select id from old))
    returning h.job_id, h.behind, h.reason, h.actor, h.held_at
), freed as materialized (
    select e.* from ended e cross join generate_series(1, (select 1))
), moved as (
    update sluice.live l
    set blocked_by = coalesce((select b.id from sluice.live b
                               where b.id = e.behind and not coalesce(b.order_key = l.order_key and b.queue = l.queue and b.order_place > l.order_place, false)), l.id)
    from freed e
    where l.id = e.job_id and l.id = any (array(select job_id from freed))
    returning l.id, l.queue, l.generation, e.reason, e.actor, e.held_at, e.behind
), audited as (
    insert into sluice.audit (actor, object, name, event, job_id, generation, from_state, to_state, reason, before, act_id)
    select $2::text, 'job', queue, 'release hold', id, generation, 'queued', 'queued', $3::text,
           jsonb_build_object('reason', m.reason, 'by', m.actor, 'at', to_char(m.held_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')), $4::uuid
    from moved m
)
select id, queue, 'queued', behind from moved

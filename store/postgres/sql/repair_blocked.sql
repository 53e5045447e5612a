-- Reads a slice of the jobs that block others. For each blocker it returns whether jobs are stuck behind it, and how
-- many wait. Jobs are stuck if the blocker has ended, unless they wait for a person to requeue it. A job that waits for
-- itself is stuck unless a run of it is open, somebody holds it, or a limit parks it. The statement also records the
-- blockers' queues in sluice.awaited, if an enqueue could not.
-- $1 uuid after   $2 integer limit
with slice as materialized (
    select l.id, l.queue, l.order_key, l.blocked_by, l.parked, l.limit_key from sluice.live l where l.blocked_by > $1::uuid order by l.blocked_by limit $2::integer
), noted as (
    insert into sluice.awaited (queue)
    select distinct b.queue
    from slice w
    cross join lateral (select l.queue from sluice.live l where l.id = w.blocked_by offset 0) b
    where (w.order_key is not null or (select true from sluice.job_after a where a.job_id = w.id limit 1))
      and not exists (select from sluice.awaited q where q.queue = b.queue)
    on conflict do nothing
)
select w.blocked_by, bool_or(w.blocked_by = w.id and not exists (select from sluice.orphan_run s where s.job_id = w.id and not s.beside)
           and not exists (select from sluice.hold h where h.job_id = w.id)
           and not (w.parked and exists (
               select from sluice.queue q
               cross join lateral unnest(string_to_array(q.limits, ',')) as g(name)
               join sluice.named_limit n on n.name = g.name and n.per_key
               join sluice.limit_lane k on k.name = n.name and k.key = w.limit_key and k.queue = w.queue
               where q.name = w.queue))
       or b.id is null and not (
           coalesce((select a.rule = 'wait' from sluice.job_after a where a.after_id = w.blocked_by and a.job_id = w.id), false)
           and coalesce((select d.outcome <> 'completed' from sluice.done d where d.id = w.blocked_by order by d.generation desc limit 1), false))), count(*)
from slice w
left join lateral (select l.id from sluice.live l where l.id = w.blocked_by offset 0) b on true
group by w.blocked_by
order by w.blocked_by

-- Looks at waiting jobs whose blockers may have ended, finds the new blocker of each, and lets a job go if it has none.
-- For a job that must be cancelled, the row names the failed job. The statement never waits: it skips a locked job,
-- because that transaction may stay open for long, and marks it as locked.
-- A job waits for the last, by id, of the jobs in its `after` that do not pass: all jobs behind that one pass. So the
-- end of another job changes nothing, unless it fails the waiting job, and each row is read once. The statement reads
-- at most $5 rows of a job. If all of them pass, the job waits for the last row read, which has ended, until the next
-- step, and is marked as unread. For a job with a key or an order key the statement reads all rows, because another
-- reason may make it wait.
-- A job that waits for itself counts as one that may have ended: somebody holds it, a run of it may be open, or a limit
-- parks it.
-- In its order, a job waits for the job before it. It also waits for a later job that was let go before it came back; a
-- parked job counts as let go. It does not wait for a later job that is held.
-- The statement reads blockers as of its start. So a transaction that leaves a job blocked must check, after its
-- commit, whether the blocker has ended meanwhile.
-- The server plans this statement without knowing the number of jobs. A full join compares no pairs, and each decided
-- job is a waiting job. The series has one row and makes the server expect many jobs.
-- $1 uuid[] jobs that may have ended   $2 uuid[] jobs to look at whatever they wait for   $3 uuid after   $4 integer limit
-- $5 integer how many rows of job_after to read of each job
with ended as materialized (
    select e.id, w.id is null and d.outcome is distinct from 'completed' as failed, d.outcome
    from unnest($1::uuid[]) as e(id)
    left join lateral (select l.id, l.blocked_by from sluice.live l where l.id = e.id offset 0) w on true
    left join lateral (select d.outcome from sluice.done d where d.id = e.id and w.id is null order by d.generation desc limit 1) d on true
    where w.id is null or coalesce(w.blocked_by = w.id, false)
), broken as materialized (
    select a.job_id, a.after_id, e.outcome
    from ended e
    cross join lateral (select a.job_id, a.after_id, a.rule from sluice.job_after a where a.after_id = e.id offset 0) a
    where e.failed and (a.rule = 'cancel' or a.rule = 'wait' and e.outcome is null)
), found as materialized (
    select f.id
    from (select l.id from sluice.live l where l.blocked_by = any (array(select id from ended))
          union
          select job_id from broken
          union
          select unnest($2::uuid[])) f
    where f.id > $3::uuid
    order by f.id
    limit $4::integer
), waiting as materialized (
    select l.id, l.queue, l.order_key, l.order_place, l.blocked_by, l.state, l.keyed, l.parked
    from sluice.live l
    where l.id = any (array(select id from found)) and coalesce(l.blocked_by is not null, false)
    order by l.id
    for update of l skip locked
), judged as materialized (
    select x.job_id, x.after_id, x.outcome, 'fails' as verdict
    from broken x
    where coalesce(x.job_id in (select id from waiting), false)
    union all
    select w.id, r.after_id, r.outcome, r.verdict
    from waiting w
    cross join lateral (
        select v.after_id, v.outcome, v.verdict
        from (
            select a.after_id, a.rule, row_number() over (order by a.after_id desc) as place, b.id is not null as lives, d.outcome,
                   case when b.id is not null then 'waits' when d.outcome = 'completed' or a.rule = 'run' then 'passes'
                        when a.rule = 'wait' and d.outcome is not null then 'waits' else 'fails' end as verdict
            from (select a.after_id, a.rule from sluice.job_after a
                  where a.job_id = w.id
                    and a.after_id <= coalesce((select c.after_id from sluice.job_after c
                        where c.after_id = w.blocked_by and c.job_id = w.id and w.order_key is null and not w.keyed), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                  order by a.after_id desc limit case when w.order_key is null and not w.keyed then $5::integer end) a
            left join lateral (select l.id from sluice.live l where l.id = a.after_id offset 0) b on true
            left join lateral (select d.outcome from sluice.done d where d.id = a.after_id and b.id is null order by d.generation desc limit 1) d on true
        ) v
        where v.verdict <> 'passes' or v.place = $5::integer and w.order_key is null and not w.keyed
        order by v.after_id desc
        limit 1
    ) r
), decided as materialized (
    select job_id, (array_agg(after_id order by after_id) filter (where verdict = 'fails'))[1] as failed,
           (array_agg(outcome order by after_id) filter (where verdict = 'fails'))[1] as outcome,
           (array_agg(after_id) filter (where verdict in ('waits', 'passes')))[1] as waits_for,
           coalesce(bool_or(verdict = 'passes'), false) as unread
    from judged
    group by job_id
), next as materialized (
    select w.id, w.queue, w.blocked_by as before, d.failed, d.outcome, d.unread, d.waits_for,
           case when d.failed is not null then w.blocked_by
                else coalesce(
               (select h.job_id from sluice.hold h where h.job_id = w.id),
               case when w.parked then w.id end,
               (select s.job_id from sluice.orphan_run s where s.job_id = w.id and not s.beside limit 1),
               (select b.id from sluice.live b where b.id = w.blocked_by and b.id <> w.id
                    and not coalesce(b.order_key = w.order_key and b.queue = w.queue and b.order_place > w.order_place
                                     and b.blocked_by is not null and not b.parked, false)),
               (select p.id from sluice.live p where p.queue = w.queue and p.order_key = w.order_key and p.order_place < w.order_place
                order by p.order_place desc limit 1),
               (select p.id from sluice.live p where p.queue = w.queue and p.order_key = w.order_key and (p.blocked_by is null or p.parked) and p.id <> w.id),
               d.waits_for) end as behind
    from waiting w
    full join decided d on d.job_id = w.id
    cross join generate_series(1, (select 1))
), moved as (
    update sluice.live l
    set blocked_by = n.behind
    from next n
    where l.id = n.id and l.id = any (array(select id from next)) and n.behind is distinct from n.before
)
select n.id, n.queue, n.behind, n.failed, coalesce(n.outcome, ''), n.behind is distinct from n.before, false as locked,
       coalesce(n.unread and n.behind = n.waits_for, false) as unread
from next n
union all
select f.id, '', null, null, '', false, true, false
from found f
where f.id not in (select id from waiting)
  and (select l.blocked_by is not null from sluice.live l where l.id = f.id)
order by 1

-- Looks at jobs that wait for others of which some may have ended: works out what each waits for now, and lets those go
-- that wait for none. Of those that must be cancelled it says so, and for which job. One that is locked is passed over,
-- because that transaction may stay open for long, and said to be. Nobody is waited for.
-- A job that waits for itself, while somebody holds it or a run of it may be open, counts as one that may have ended.
-- What a job waits for is read as it was when the statement began. So whoever leaves a job blocked looks, after the
-- commit, whether the blocker has ended meanwhile.
-- The server plans it without knowing how many jobs it finds. A full join compares no pairs, and each decided job is a waiting
-- one. The series, of one row, makes the server expect many.
-- $1 uuid[] jobs that may have ended   $2 uuid[] jobs to look at whatever they wait for   $3 uuid after   $4 integer limit
with ended as materialized (
    select e.id from unnest($1::uuid[]) as e(id)
    where (select true from sluice.live l where l.id = e.id and l.blocked_by is distinct from l.id) is null
), found as materialized (
    select f.id
    from (select l.id from sluice.live l where l.blocked_by = any (array(select id from ended))
          union
          select a.job_id from sluice.job_after a where a.after_id = any (array(select id from ended))
          union
          select unnest($2::uuid[])) f
    where f.id > $3::uuid
    order by f.id
    limit $4::integer
), waiting as materialized (
    select l.id, l.queue, l.order_key, l.order_place, l.blocked_by, l.state
    from sluice.live l
    where l.id = any (array(select id from found)) and coalesce(l.blocked_by is not null, false)
    order by l.id
    for update of l skip locked
), rest as materialized (
    select a.job_id, a.after_id, b.id is not null as lives, j.after_failure as rule, o.id is null as gone,
           case when b.id is null then (select d.outcome from sluice.done d where d.id = a.after_id order by d.generation desc limit 1) end as outcome
    from waiting w
    cross join lateral (select o.after_failure from sluice.job o where o.id = w.id offset 0) j
    cross join lateral (select a.job_id, a.after_id from sluice.job_after a where a.job_id = w.id offset 0) a
    left join lateral (select j.id from sluice.job j where j.id = a.after_id offset 0) o on true
    left join lateral (select l.id from sluice.live l where l.id = a.after_id offset 0) b on true
), judged as materialized (
    select job_id, after_id, lives, outcome,
           case when lives then 'waits' when outcome = 'completed' or rule = 'run' then 'passes'
                when rule = 'wait' and not gone then 'waits' else 'fails' end as verdict
    from rest
), forgotten as (
    delete from sluice.job_after a
    where a.job_id = any (array(select id from found))
      and ((a.job_id, a.after_id) in (select g.job_id, g.after_id from judged g where g.verdict <> 'waits')
           or (select true from sluice.live l where l.id = a.job_id) is null)
), decided as materialized (
    select job_id, (array_agg(after_id order by after_id) filter (where verdict = 'fails'))[1] as failed,
           (array_agg(outcome order by after_id) filter (where verdict = 'fails'))[1] as outcome,
           (array_agg(after_id order by lives desc, after_id) filter (where verdict = 'waits'))[1] as waits_for
    from judged
    group by job_id
), next as materialized (
    select w.id, w.queue, w.blocked_by as before, d.failed, d.outcome,
           case when d.failed is not null then w.blocked_by
                else coalesce(
               (select h.job_id from sluice.hold h where h.job_id = w.id),
               (select s.job_id from sluice.orphan_run s where s.job_id = w.id and not s.beside limit 1),
               (select b.id from sluice.live b where b.id = w.blocked_by and b.id <> w.id),
               (select p.id from sluice.live p where p.queue = w.queue and p.order_key = w.order_key and p.order_place < w.order_place
                order by p.order_place desc limit 1),
               (select p.id from sluice.live p where p.queue = w.queue and p.order_key = w.order_key and p.blocked_by is null and p.id <> w.id),
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
select n.id, n.queue, n.behind, n.failed, coalesce(n.outcome, ''), n.behind is distinct from n.before, false as locked
from next n
union all
select f.id, '', null, null, '', false, true
from found f
where f.id not in (select id from waiting)
  and (select l.blocked_by is not null from sluice.live l where l.id = f.id)
order by 1

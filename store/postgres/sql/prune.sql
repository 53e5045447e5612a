-- Deletes finished jobs whose queue keeps them no longer: every life, every failed attempt, the job, and a key that the
-- job left behind. The outcome of the last life decides how long. The statement walks the index done_ended from one
-- queue and outcome to the next, and reads only jobs that are too old. It skips a locked row, because another
-- transaction requeues that job now.
-- $1 text queue, $2 text outcome, $3 timestamptz: where the previous call ended ('', '', -infinity: at the front)
-- $4 integer the most jobs to delete   $5 bigint, $6 bigint, $7 bigint default keep of completed, cancelled, dead in ms
with recursive class as (
    select $1::text as queue, $2::text as outcome, $3::timestamptz as since
    union all
    select n.queue, n.outcome, '-infinity'
    from class c
    cross join lateral (
        select d.queue, d.outcome
        from sluice.done d
        where (d.queue, d.outcome) > (c.queue, c.outcome) and d.requeued_at is null
        order by d.queue, d.outcome
        limit 1
    ) n
), old as materialized (
    select c.queue, c.outcome, last.finished_at, last.place
    from class c
    left join lateral (
        select case c.outcome when 'completed' then q.keep_completed_ms when 'cancelled' then q.keep_cancelled_ms else q.keep_dead_ms end as ms
        from sluice.queue q
        where q.name = c.queue
        limit 1
    ) said on true
    cross join lateral (select coalesce(said.ms, case c.outcome when 'completed' then $5::bigint when 'cancelled' then $6::bigint else $7::bigint end) as ms) keep
    cross join lateral (
        select d.ctid as place, d.finished_at
        from sluice.done d
        where d.queue = c.queue and d.outcome = c.outcome and d.requeued_at is null and keep.ms > 0
          and d.finished_at >= c.since and d.finished_at < now() - keep.ms * interval '1 millisecond'
        order by d.finished_at
        limit $4::integer
        for update skip locked
    ) last
    limit $4::integer
), lives as (
    delete from sluice.done where ctid = any (array(select place from old)) returning id, generation, attempts, outcome
), before as (
    delete from sluice.done where id = any (array(select id from lives where generation > 1)) and requeued_at is not null
), attempts as (
    delete from sluice.attempt where job_id = any (array(select id from lives where generation > 1 or attempts > 0))
), edges as materialized (
    -- Without its row, a completed job no longer blocks a waiting job. The row of another job stays while the waiting job lives.
    select a.place
    from lives e
    cross join lateral (select w.ctid as place, w.job_id from sluice.job_after w where w.after_id = e.id offset 0) a
    where e.outcome = 'completed' or (select true from sluice.live l where l.id = a.job_id) is null
    union
    select a.place
    from lives e
    cross join lateral (select w.ctid as place from sluice.job_after w where w.job_id = e.id offset 0) a
), forgotten as (
    -- Every transaction that deletes from job_after locks its rows in the order of job_id, then after_id. The order by a row
    -- keeps the planner from reading the whole index for the order.
    delete from sluice.job_after
    where ctid = any (array(
        select a.ctid from sluice.job_after a where a.ctid = any (array(select place from edges))
        order by row(a.job_id, a.after_id)
        for update))
), jobs as (
    delete from sluice.job where id = any (array(select id from lives)) returning id, queue, key
), keys as (
    -- The lateral join finds the keys one by one; with old statistics, another join may read the whole table. The statement
    -- checks the holder of the key again, because another job may have taken the key just now.
    delete from sluice.job_key
    where ctid = any (array(
        select k.place
        from jobs j
        cross join lateral (select ctid as place from sluice.job_key w where w.queue = j.queue and w.key = j.key offset 0) k
    )) and job_id = any (array(select id from jobs)) and until is null
)
select (select count(*) from lives), (select count(*) from old), last.queue, last.outcome, last.finished_at
from (select 1) one
left join (select queue, outcome, finished_at from old order by queue desc, outcome desc, finished_at desc limit 1) last on true

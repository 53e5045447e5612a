-- Deletes finished jobs that were kept as long as their queue asks: every life, every failed attempt, the job, and
-- a key that it left behind. What counts is how the last life ended. Walks the primary key of done in slices, so
-- that it needs no index of its own. A row that is locked is being requeued just now.
-- $1 uuid after   $2 integer how many to look at   $3 bigint, $4 bigint, $5 bigint default keep of completed, cancelled, dead in ms
with slice as materialized (
    select d.id, d.generation, d.queue, d.outcome
    from sluice.done d
    where d.id > $1::uuid
    order by d.id
    limit $2::integer
), old as materialized (
    select last.id
    from slice s
    left join sluice.queue q on q.name = s.queue
    cross join lateral (select case s.outcome
        when 'completed' then coalesce(q.keep_completed_ms, $3::bigint)
        when 'cancelled' then coalesce(q.keep_cancelled_ms, $4::bigint)
        else coalesce(q.keep_dead_ms, $5::bigint) end as ms) keep
    cross join lateral (
        select d.id
        from sluice.done d
        where d.id = s.id and d.generation = s.generation and d.requeued_at is null
          and keep.ms > 0 and d.finished_at < now() - keep.ms * interval '1 millisecond'
        for update skip locked
    ) last
), lives as (
    delete from sluice.done where id = any (array(select id from old))
), attempts as (
    delete from sluice.attempt where job_id = any (array(select id from old))
), jobs as (
    delete from sluice.job where id = any (array(select id from old)) returning id, queue, key
), keys as (
    delete from sluice.job_key k
    using jobs j
    where k.queue = j.queue and k.key = j.key and k.job_id = j.id and k.until is null
)
select (select count(*) from old),
       (select s.id from slice s order by s.id desc limit 1),
       (select count(*) from slice)

-- Deletes finished lives that were kept as long as their queue asks, and the job with its last one.
-- Walks the primary key of done in slices, so that it needs no index of its own.
-- $1 uuid after   $2 integer how many to look at   $3 bigint, $4 bigint, $5 bigint default keep of completed, cancelled, dead in ms
with slice as materialized (
    select d.id, d.generation, d.queue, d.outcome, d.finished_at
    from sluice.done d
    where d.id > $1::uuid
    order by d.id
    limit $2::integer
), old as materialized (
    select s.id, s.generation
    from slice s
    left join sluice.queue q on q.name = s.queue
    cross join lateral (select case s.outcome
        when 'completed' then coalesce(q.keep_completed_ms, $3::bigint)
        when 'cancelled' then coalesce(q.keep_cancelled_ms, $4::bigint)
        else coalesce(q.keep_dead_ms, $5::bigint) end as ms) keep
    where keep.ms > 0 and s.finished_at < now() - keep.ms * interval '1 millisecond'
), gone as (
    delete from sluice.done d using old o where d.id = o.id and d.generation = o.generation
), attempts as (
    delete from sluice.attempt a using old o where a.job_id = o.id and a.generation = o.generation
), jobs as (
    delete from sluice.job j
    using old o
    where j.id = o.id
      and not exists (select from sluice.live l where l.id = j.id)
      and not exists (select from sluice.done d where d.id = j.id
                      and not exists (select from old x where x.id = d.id and x.generation = d.generation))
)
select (select count(*) from old),
       (select s.id from slice s order by s.id desc limit 1),
       (select count(*) from slice)

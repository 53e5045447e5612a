-- Finds the next queue and outcome of the history after a place, and counts the jobs whose retention is over.
-- $1 text queue, $2 text outcome: the place   $3 integer the most jobs to count
-- $4 bigint, $5 bigint, $6 bigint default keep of completed, cancelled, dead in ms
select c.queue, c.outcome, due.jobs
from (
    select d.queue, d.outcome
    from sluice.done d
    where (d.queue, d.outcome) > ($1::text, $2::text) and d.requeued_at is null
    order by d.queue, d.outcome
    limit 1
) c
left join lateral (
    select case c.outcome when 'completed' then q.keep_completed_ms when 'cancelled' then q.keep_cancelled_ms else q.keep_dead_ms end as ms
    from sluice.queue q
    where q.name = c.queue
    limit 1
) said on true
cross join lateral (select coalesce(said.ms, case c.outcome when 'completed' then $4::bigint when 'cancelled' then $5::bigint else $6::bigint end) as ms) keep
cross join lateral (
    select count(*)::integer as jobs
    from (
        select true
        from sluice.done d
        where d.queue = c.queue and d.outcome = c.outcome and d.requeued_at is null and keep.ms > 0
          and d.finished_at < now() - keep.ms * interval '1 millisecond'
        order by d.finished_at
        limit $3::integer
    ) few
) due

-- Removes results before their jobs are deleted, if the queue's keep_results has passed, and stores how far it has
-- come. The statement walks the index done_ended of each queue with keep_results from there on. It does not wait for a
-- locked row, because another transaction requeues that job now. Of jobs that ended at the instant of the cursor, it
-- reads only jobs with a result again. A cursor at an instant to come is from before the clock was set back: jobs have
-- ended before it since. Returns the number of jobs read.
-- $1 integer the most jobs to read
with class as materialized (
    select q.name as queue, o.outcome, q.keep_results_ms as ms, coalesce(c.upto, '-infinity') as since
    from sluice.queue q
    cross join unnest('{completed,cancelled,dead}'::text[]) as o(outcome)
    left join lateral (
        select w.upto from sluice.result_cursor w where w.queue = q.name and w.outcome = o.outcome and w.upto <= now() limit 1
    ) c on true
    where q.keep_results_ms > 0
), old as materialized (
    select c.queue, c.outcome, last.finished_at, last.place, last.has
    from class c
    cross join lateral (
        select d.ctid as place, d.finished_at, coalesce(octet_length(d.result) > 0, false) as has
        from sluice.done d
        where d.queue = c.queue and d.outcome = c.outcome and d.requeued_at is null
          and d.finished_at >= c.since and d.finished_at < now() - c.ms * interval '1 millisecond'
          and (d.finished_at > c.since or octet_length(d.result) > 0)
        order by d.finished_at
        limit $1::integer
    ) last
    limit $1::integer
), free as materialized (
    select d.ctid as place
    from sluice.done d
    where d.ctid = any (array(select place from old where has))
    order by row(d.id, d.generation)
    for update skip locked
), removed as (
    update sluice.done set result = '' where ctid = any (array(select place from free))
), noted as (
    insert into sluice.result_cursor as w (queue, outcome, upto)
    select o.queue, o.outcome, max(o.finished_at) from old o group by o.queue, o.outcome order by o.queue, o.outcome
    on conflict (queue, outcome) do update set upto = case when w.upto <= now() then greatest(w.upto, excluded.upto) else excluded.upto end
)
select count(*) from old

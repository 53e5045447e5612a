-- Makes a holder lead free tasks, renews its leads, and returns all tasks that it leads now. A leader writes once in a
-- third of a lease, and a holder without a lead does not write. A lease that ends more than three leases ahead dates
-- from before the clock was set back, and counts as ended.
-- $1 text holder   $2 text[] tasks   $3 bigint lease in microseconds
with asked as materialized (
    select a.task, l.holder, l.until, clock_timestamp() as now, $3::bigint * interval '1 microsecond' as lease
    from unnest($2::text[]) as a (task) left join sluice.lead l on l.task = a.task
), taken as (
    insert into sluice.lead as l (task, holder, since, until)
    select a.task, $1::text, a.now, a.now + a.lease
    from asked a
    where a.holder is null or a.until <= a.now or a.until > a.now + 3 * a.lease
        or a.holder = $1::text and (a.until <= a.now + a.lease * 2 / 3 or a.until > a.now + a.lease)
    order by a.task
    on conflict (task) do update
    set holder = excluded.holder, until = excluded.until,
        since = case when l.holder = excluded.holder then l.since else excluded.since end
    where l.holder = excluded.holder or l.until <= clock_timestamp()
        or l.until > clock_timestamp() + $3::bigint * interval '3 microseconds'
    returning l.task
)
select task from taken
union
select a.task from asked a where a.holder = $1::text and a.until > a.now
order by task

-- Adds up changes of batches, and returns the batches, with a row at least that has the number of the changes. If all were taken, those
-- of the transactions that had ended before need not be looked for again.
-- $1 integer limit
with mark as materialized (
    select coalesce((select case when m.xid > pg_snapshot_xmin(pg_current_snapshot()) then '0' else m.xid end from sluice.batch_counted m), '0') as xid
), taken as (
    delete from sluice.batch_change
    where ctid = any (array(select h.ctid from sluice.batch_change h where h.xid >= (select xid from mark) order by h.xid limit $1::integer))
    returning batch, kind, jobs
), counted as (
    update sluice.batch_counted m
    set xid = pg_snapshot_xmin(pg_current_snapshot())
    where (select count(*) from taken) < $1::integer and m.xid <> pg_snapshot_xmin(pg_current_snapshot())
), sums as materialized (
    select t.batch, coalesce(sum(t.jobs) filter (where t.kind = 'total'), 0) as total, coalesce(sum(t.jobs) filter (where t.kind = 'completed'), 0) as completed,
           coalesce(sum(t.jobs) filter (where t.kind = 'dead'), 0) as dead, coalesce(sum(t.jobs) filter (where t.kind = 'cancelled'), 0) as cancelled,
           bool_or(t.kind = 'died' or t.kind = 'dead' and t.jobs > 0) as died
    from taken t
    group by t.batch
), known as materialized (
    select s.*, b.name, b.parent, b.callbacks, b.created_at, b.created_by, b.closed_at, b.completed_at, b.succeeded_at, b.died_at, b.paused
    from sums s
    cross join lateral (select * from sluice.batch w where w.id = s.batch offset 0) b
), added as (
    insert into sluice.batch_count as c (batch, total, completed, dead, cancelled)
    select batch, total, completed, dead, cancelled from known order by batch
    on conflict (batch) do update
    set total = c.total + excluded.total, completed = c.completed + excluded.completed, dead = c.dead + excluded.dead, cancelled = c.cancelled + excluded.cancelled
    returning c.*
)
select n.taken, coalesce(k.died, false), k.batch, coalesce(k.name, ''), k.parent, coalesce(k.callbacks, ''), k.created_at, coalesce(k.created_by, ''),
       k.closed_at, k.completed_at, k.succeeded_at, k.died_at, coalesce(k.paused, ''),
       coalesce(a.total, 0), coalesce(a.completed, 0), coalesce(a.dead, 0), coalesce(a.cancelled, 0), 0, 0, now()
from (select count(*) as taken from taken) n
left join (added a join known k on k.batch = a.batch) on true

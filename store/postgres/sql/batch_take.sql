-- Adds up changes of batches, and returns the batches. There is at least one row, with the number of changes. The
-- statement records how far it has come: a transaction id, and the open transactions before it. Later statements skip
-- the changes of all other transactions, because an old transaction keeps dead rows from being removed.
-- $1 integer limit
with mark as materialized (
    select coalesce(m.xid, 0) as xid, coalesce(m.open, '{}') as open
    from (select 1) one left join sluice.batch_counted m on m.xid <= txid_snapshot_xmax(txid_current_snapshot())
), early as materialized (
    select h.ctid as place from sluice.batch_change h where h.xid = any ((select open from mark)::bigint[]) limit $1::integer
), later as materialized (
    select h.ctid as place, h.xid from sluice.batch_change h where h.xid >= (select xid from mark) order by h.xid limit $1::integer - (select count(*) from early)
), taken as (
    delete from sluice.batch_change
    where ctid = any (array(select place from early union all select place from later))
    returning batch, kind, jobs
), reached as materialized (
    select case when c.early < $1::integer and c.early + c.later < $1::integer then txid_snapshot_xmax(txid_current_snapshot())
                when c.early < $1::integer then c.last end as xid
    from (select (select count(*) from early) as early, count(*) as later, max(l.xid) as last from later l) c
), counted as (
    update sluice.batch_counted m
    set xid = r.xid, open = array(select o from (select txid_snapshot_xip(txid_current_snapshot()) union select txid_current()) as g(o) where o < r.xid)
    from reached r
    where r.xid is not null
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

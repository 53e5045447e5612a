-- Locks batches that may be complete, and returns the facts that decide: whether changes came since, how many batches
-- directly in each are not complete, and how many have not succeeded. The statement skips locked batches.
-- $1 uuid[] ids, sorted
with locked as materialized (
    select b.id from sluice.batch b where b.id = any ($1::uuid[]) order by b.id for update skip locked
), mark as materialized (
    select coalesce(m.xid, 0) as xid, coalesce(m.open, '{}') as open
    from (select 1) one left join sluice.batch_counted m on m.xid <= txid_snapshot_xmax(txid_current_snapshot())
), late as materialized (
    select h.batch from sluice.batch_change h where h.xid >= (select xid from mark) and h.batch = any ($1::uuid[])
    union
    select h.batch from sluice.batch_change h where h.xid = any ((select open from mark)::bigint[]) and h.batch = any ($1::uuid[])
)
select k.id, exists (select from late h where h.batch = k.id),
       i.behind, i.failed
from locked k
cross join lateral (
    select count(*) filter (where w.completed_at is null) as behind, count(*) filter (where w.succeeded_at is null) as failed
    from sluice.batch w where w.parent = k.id
) i

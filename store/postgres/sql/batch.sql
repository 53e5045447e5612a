-- Reads a batch with its exact counts: the counts that upkeep has added up, plus later changes, in one snapshot.
-- $1 uuid id
with mark as materialized (
    select coalesce(m.xid, 0) as xid, coalesce(m.open, '{}') as open
    from (select 1) one left join sluice.batch_counted m on m.xid <= txid_snapshot_xmax(txid_current_snapshot())
), pending as materialized (
    select h.batch, coalesce(sum(h.jobs) filter (where h.kind = 'total'), 0) as total, coalesce(sum(h.jobs) filter (where h.kind = 'completed'), 0) as completed,
           coalesce(sum(h.jobs) filter (where h.kind = 'dead'), 0) as dead, coalesce(sum(h.jobs) filter (where h.kind = 'cancelled'), 0) as cancelled
    from (
        select c.batch, c.kind, c.jobs from sluice.batch_change c where c.xid >= (select xid from mark) and c.batch = $1::uuid
        union all
        select c.batch, c.kind, c.jobs from sluice.batch_change c where c.xid = any ((select open from mark)::bigint[]) and c.batch = $1::uuid
    ) h
    group by h.batch
)
select b.id, b.name, b.parent, b.callbacks, b.created_at, b.created_by, b.closed_at, b.completed_at, b.succeeded_at, b.died_at, b.paused,
       (coalesce(c.total, 0) + coalesce(p.total, 0))::bigint as total, (coalesce(c.completed, 0) + coalesce(p.completed, 0))::bigint as completed, (coalesce(c.dead, 0) + coalesce(p.dead, 0))::bigint as dead,
       (coalesce(c.cancelled, 0) + coalesce(p.cancelled, 0))::bigint as cancelled,
       i.batches, i.complete,
       now()
from sluice.batch b
left join sluice.batch_count c on c.batch = b.id
left join pending p on p.batch = b.id
cross join lateral (select count(*) as batches, count(w.completed_at) as complete from sluice.batch w where w.parent = b.id) i
where b.id = $1::uuid

-- Lists a page of batches with their exact counts, the newest first.
-- $1 uuid parent (null: all)   $2 boolean only those that are not complete   $3 uuid before (null: from the newest)   $4 integer limit
with mark as materialized (
    select coalesce(m.xid, 0) as xid, coalesce(m.open, '{}') as open
    from (select 1) one left join sluice.batch_counted m on m.xid <= txid_snapshot_xmax(txid_current_snapshot())
), pending as materialized (
    select h.batch, coalesce(sum(h.jobs) filter (where h.kind = 'total'), 0) as total, coalesce(sum(h.jobs) filter (where h.kind = 'completed'), 0) as completed,
           coalesce(sum(h.jobs) filter (where h.kind = 'dead'), 0) as dead, coalesce(sum(h.jobs) filter (where h.kind = 'cancelled'), 0) as cancelled
    from (
        select c.batch, c.kind, c.jobs from sluice.batch_change c where c.xid >= (select xid from mark)
        union all
        select c.batch, c.kind, c.jobs from sluice.batch_change c where c.xid = any ((select open from mark)::bigint[])
    ) h
    group by h.batch
)
select b.id, b.name, b.parent, b.callbacks, b.created_at, b.created_by, b.closed_at, b.completed_at, b.succeeded_at, b.died_at, b.paused,
       (coalesce(c.total, 0) + coalesce(p.total, 0))::bigint as total, (coalesce(c.completed, 0) + coalesce(p.completed, 0))::bigint as completed, (coalesce(c.dead, 0) + coalesce(p.dead, 0))::bigint as dead,
       (coalesce(c.cancelled, 0) + coalesce(p.cancelled, 0))::bigint as cancelled,
       i.batches, i.complete,
       now()
from (
    select * from sluice.batch w
    where ($1::uuid is null or w.parent = $1::uuid) and (not $2::boolean or w.completed_at is null) and w.id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    order by w.id desc
    limit $4::integer
) b
left join lateral (select w.* from sluice.batch_count w where w.batch = b.id offset 0) c on true
left join pending p on p.batch = b.id
cross join lateral (select count(*) as batches, count(w.completed_at) as complete from sluice.batch w where w.parent = b.id) i
order by b.id desc

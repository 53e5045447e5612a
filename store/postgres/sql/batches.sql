-- A page of batches with their exact counts, the newest first.
-- $1 uuid parent (null: all)   $2 boolean only those that are not complete   $3 uuid before (null: from the newest)   $4 integer limit
with pending as materialized (
    select h.batch, coalesce(sum(h.jobs) filter (where h.kind = 'total'), 0) as total, coalesce(sum(h.jobs) filter (where h.kind = 'completed'), 0) as completed,
           coalesce(sum(h.jobs) filter (where h.kind = 'dead'), 0) as dead, coalesce(sum(h.jobs) filter (where h.kind = 'cancelled'), 0) as cancelled
    from sluice.batch_change h
    where h.xid >= coalesce(coalesce((select case when m.xid > pg_snapshot_xmin(pg_current_snapshot()) then '0' else m.xid end from sluice.batch_counted m), '0'), '0')
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
left join sluice.batch_count c on c.batch = b.id
left join pending p on p.batch = b.id
cross join lateral (select count(*) as batches, count(w.completed_at) as complete from sluice.batch w where w.parent = b.id) i
order by b.id desc

-- Returns whether upkeep has changes to add up, and whether some batch is not complete. The statement skips changes of
-- transactions that had ended when upkeep last added up.
with mark as materialized (
    select coalesce(m.xid, 0) as xid, coalesce(m.open, '{}') as open
    from (select 1) one left join sluice.batch_counted m on m.xid <= txid_snapshot_xmax(txid_current_snapshot())
)
select coalesce((select true from sluice.batch_change h where h.xid >= (select xid from mark) order by h.xid limit 1),
                (select true from sluice.batch_change h where h.xid = any ((select open from mark)::bigint[]) limit 1)) is not null,
       (select true from sluice.batch b where b.completed_at is null order by b.id limit 1) is not null

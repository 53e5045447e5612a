-- Whether upkeep has changes to add up, and whether some batch is not complete.
select (select true from sluice.batch_change h where h.xid >= coalesce((select case when m.xid > pg_snapshot_xmin(pg_current_snapshot()) then '0' else m.xid end from sluice.batch_counted m), '0') order by h.xid limit 1) is not null,
       (select true from sluice.batch b where b.completed_at is null order by b.id limit 1) is not null

-- Makes upkeep look at all batches that are closed and not complete. A move or a restore of the store may have lost a
-- change.
insert into sluice.batch_change (batch, kind, jobs)
select b.id, 'total', 0 from sluice.batch b where b.completed_at is null and b.closed_at is not null

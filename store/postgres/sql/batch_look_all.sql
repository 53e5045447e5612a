-- Lets upkeep look at all batches that are closed and not complete: a look may have been lost with a store that was moved or restored.
insert into sluice.batch_change (batch, kind, jobs)
select b.id, 'total', 0 from sluice.batch b where b.completed_at is null and b.closed_at is not null

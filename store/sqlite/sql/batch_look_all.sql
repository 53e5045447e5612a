-- Lets upkeep look at all batches that are closed and not complete: a look may have been lost with a store that was moved.
update sluice_batch_count set changed = 1
where changed = 0 and batch in (select b.id from sluice_batch b where b.completed_at is null and b.closed_at is not null)

-- Makes upkeep look at all batches that are closed and not complete. A move of the store may have lost a change.
update sluice_batch_count set changed = 1
where changed = 0 and batch in (select b.id from sluice_batch b where b.completed_at is null and b.closed_at is not null)

-- Returns whether upkeep must look at batches, and whether some batch is not complete.
select exists (select 1 from sluice_batch_count where changed = 1), exists (select 1 from sluice_batch where completed_at is null)

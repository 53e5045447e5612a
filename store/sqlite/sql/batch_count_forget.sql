-- Deletes the counts of a batch.
-- ?1 id
delete from sluice_batch_count where batch = ?1

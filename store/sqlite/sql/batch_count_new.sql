-- Begins the counts of a new batch.
-- ?1 batch
insert into sluice_batch_count (batch) values (?1)

-- Records that upkeep has looked at batches.
-- ?1 ids as a JSON array of hexadecimal texts
update sluice_batch_count set changed = 0 where batch in (select unhex(value) from json_each(?1))

-- Compares an index with itself and each row of its table with the index. {schema} is where the extension amcheck is. It
-- fails where they do not agree. It locks what a select locks.
-- $1 text name of the index
select {schema}.bt_index_check(index => ('sluice.' || quote_ident($1::text))::regclass, heapallindexed => true)

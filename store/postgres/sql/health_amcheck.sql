-- Compares an index with itself, and each row of its table with the index. The statement fails if they do not agree. It
-- takes the same locks as a select. {schema} is the schema of the extension amcheck.
-- $1 text name of the index
select {schema}.bt_index_check(index => ('sluice.' || quote_ident($1::text))::regclass, heapallindexed => true)

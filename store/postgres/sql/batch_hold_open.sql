-- Locks batches, so that they stay open until the transaction ends. The statement is for transactions that see only
-- their first snapshot: it fails if a batch was closed since the transaction began.
-- $1 uuid[] ids
select b.id from sluice.batch b where b.id = any ($1::uuid[]) order by b.id for share

-- Locks batches, so that they stay open until the transaction ends; it fails where one was closed since the transaction began. For
-- transactions that see only what was there when they began.
-- $1 uuid[] ids
select b.id from sluice.batch b where b.id = any ($1::uuid[]) order by b.id for share

-- Returns which batches are open, why they are paused, and whether the transaction sees only its first snapshot. It
-- runs after batch_enter, in the same transaction.
-- $1 uuid[] ids
select b.id, b.closed_at is null, b.paused, current_setting('transaction_isolation') <> 'read committed'
from sluice.batch b
where b.id = any ($1::uuid[])

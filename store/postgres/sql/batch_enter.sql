-- Keeps batches from being found complete until the transaction ends. Of one that is being found complete now, says no: it is
-- closed. No row is written, so that enqueues of one batch do not meet.
-- $1 uuid[] ids
select g.id, pg_try_advisory_xact_lock_shared(hashtextextended('sluice batch ' || g.id::text, 0))
from unnest($1::uuid[]) as g(id)

-- Keeps upkeep from finding batches complete until the transaction ends. False: upkeep is finding the batch complete
-- now, so it is closed. The statement writes no row, so that enqueues into one batch do not block each other.
-- $1 uuid[] ids
select g.id, pg_try_advisory_xact_lock_shared(hashtextextended('sluice batch ' || g.id::text, 0))
from unnest($1::uuid[]) as g(id)

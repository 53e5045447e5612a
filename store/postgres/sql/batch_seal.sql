-- Tries to make sure that no transaction adds jobs to closed batches. If it succeeds, no other transaction can add jobs
-- until this transaction ends.
-- $1 uuid[] ids
select g.id, pg_try_advisory_xact_lock(hashtextextended('sluice batch ' || g.id::text, 0))
from unnest($1::uuid[]) as g(id)

-- Makes other calls of an act wait until the transaction ends. A call that is sent again beside the first one would
-- otherwise not see what that one has done, and refuse it.
-- $1 uuid act
select pg_advisory_xact_lock(hashtextextended('sluice act ' || $1::uuid::text, 0))

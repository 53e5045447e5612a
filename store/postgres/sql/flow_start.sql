-- Lets one transaction at a time start a flow. A later one then sees the flow.
-- $1 uuid the flow
select pg_advisory_xact_lock(hashtextextended('sluice flow ' || $1::uuid::text, 0))

-- Returns the batch of a seal.
-- $1 bigint seal   $2 text level
select body from sluice.audit_batch where seal = $1::bigint and level = $2::text

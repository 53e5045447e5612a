-- Returns whether a queue has a row in flow, even if another claim has locked the row.
-- $1 text queue
select exists (select from sluice.flow where queue = $1::text)

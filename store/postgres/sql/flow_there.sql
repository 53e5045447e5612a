-- Whether a queue has a row of limits, which another claim has locked.
-- $1 text queue
select exists (select from sluice.flow where queue = $1::text)

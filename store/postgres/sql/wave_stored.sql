-- Reads the rows of a queue's last count.
-- $1 text queue
select part, at, jobs, tenants from sluice.wave where queue = $1::text

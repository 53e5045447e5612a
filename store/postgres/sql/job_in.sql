-- Returns whether a job is stored in a queue.
-- $1 uuid id
-- $2 text queue
select exists (select from sluice.job where id = $1::uuid and queue = $2::text)

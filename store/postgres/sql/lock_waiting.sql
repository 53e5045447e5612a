-- Locks a job if it still waits, so that it can be replaced.
-- $1 uuid id
select id from sluice.live where id = $1::uuid and state = 'queued' for update

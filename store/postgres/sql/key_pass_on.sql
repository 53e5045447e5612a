-- Passes one key, which is held for a window, to a job for the next window. Returns the start of that window.
-- $1 text queue   $2 text key   $3 uuid job id   $4 interval window
update sluice.job_key
set job_id = $3::uuid, until = until + $4::interval
where queue = $1::text and key = $2::text
returning until - $4::interval

-- Passes one key to another job.
-- $1 text queue   $2 text key   $3 uuid job id   $4 interval window (null: none)   $5 boolean forever
update sluice.job_key
set job_id = $3::uuid, until = case when $5::boolean then 'infinity' else clock_timestamp() + $4::interval end
where queue = $1::text and key = $2::text

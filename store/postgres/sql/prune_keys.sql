-- Forgets keys whose window has passed.
-- $1 integer limit
delete from sluice.job_key
where (queue, key) in (select queue, key from sluice.job_key where until < now() limit $1::integer)

-- Deletes keys whose window has passed, and returns their number.
-- $1 integer limit
-- The statement skips a locked key, because an enqueue takes the key now. It checks the window twice, because an enqueue may
-- have just taken the key.
with old as materialized (
    select queue, key from sluice.job_key where until < now() limit $1::integer for update skip locked
), gone as (
    delete from sluice.job_key k
    using old o
    where k.queue = o.queue and k.key = o.key and k.until < now()
    returning 1
)
select count(*) from gone

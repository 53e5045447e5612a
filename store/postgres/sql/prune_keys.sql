-- Forgets keys whose window has passed, and says how many.
-- $1 integer limit
-- One that is locked is being taken anew; the condition stands twice because it may have been just now.
with old as materialized (
    select queue, key from sluice.job_key where until < now() limit $1::integer for update skip locked
), gone as (
    delete from sluice.job_key k
    using old o
    where k.queue = o.queue and k.key = o.key and k.until < now()
    returning 1
)
select count(*) from gone

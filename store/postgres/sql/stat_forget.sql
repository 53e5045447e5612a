-- Deletes buckets of a kind that were kept long enough, the oldest first, and returns their number.
-- $1 integer every_s   $2 interval how long they are kept   $3 integer limit
with gone as (
    delete from sluice.stat
    where ctid = any (array(
        select ctid from sluice.stat where every_s = $1::integer and at < now() - $2::interval order by at limit $3::integer
    ))
    returning 1
)
select count(*) from gone

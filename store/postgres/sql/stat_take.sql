-- Deletes and returns the oldest counts of holders from before an instant, to add them up.
-- $1 timestamptz until   $2 integer limit
delete from sluice.stat_part
where ctid = any (array(
    select ctid from sluice.stat_part where at < $1::timestamptz order by at, queue, holder limit $2::integer
))
returning at, queue, body

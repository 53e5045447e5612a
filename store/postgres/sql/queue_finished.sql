-- Counts the finished jobs of a queue, up to a limit. The statement may read the whole history.
-- $1 text queue   $2 integer limit
select count(*) from (select from sluice.done where queue = $1::text limit $2::integer) d

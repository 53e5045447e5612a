-- Counts the rows that keep a queue from being deleted, each up to a limit: unfinished jobs and orphan runs.
-- $1 text queue   $2 integer limit
select (select count(*) from (select from sluice.live where queue = $1::text limit $2::integer) l),
       (select count(*) from (select from sluice.orphan_run where queue = $1::text limit $2::integer) r)

-- How many finished jobs a queue has in the history, up to a limit. It reads all of the history of other queues.
-- $1 text queue   $2 integer limit
select count(*) from (select from sluice.done where queue = $1::text limit $2::integer) d

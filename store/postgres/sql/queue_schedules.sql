-- Lists the schedules that make jobs in a queue, up to a limit.
-- $1 text queue   $2 integer limit
select name from sluice.schedule where queue = $1::text order by name collate "C" limit $2::integer

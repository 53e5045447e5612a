-- Lists the schedules that make jobs in a queue, up to a limit.
-- ?1 queue   ?2 limit
select name from sluice_schedule where queue = ?1 order by name limit ?2 + 0

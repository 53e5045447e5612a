-- How many finished jobs a queue has in the history, up to a limit. It reads all of the history of other queues.
-- ?1 queue   ?2 limit
select count(*) from (select 1 from sluice_done where queue = ?1 limit ?2 + 0)

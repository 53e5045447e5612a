-- Counts the finished jobs of a queue, up to a limit. The statement may read the whole history.
-- ?1 queue   ?2 limit
select count(*) from (select 1 from sluice_done where queue = ?1 limit ?2 + 0)

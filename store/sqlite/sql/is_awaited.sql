-- Returns whether other jobs wait for jobs of a queue.
-- ?1 queue
select exists (select 1 from sluice_awaited where queue = ?1)

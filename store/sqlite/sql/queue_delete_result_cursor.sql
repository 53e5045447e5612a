-- Deletes what sluice_result_cursor has of a queue.
-- ?1 queue
delete from sluice_result_cursor where queue = ?1

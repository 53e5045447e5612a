-- Deletes a queue's rows in sluice_result_cursor.
-- ?1 queue
delete from sluice_result_cursor where queue = ?1

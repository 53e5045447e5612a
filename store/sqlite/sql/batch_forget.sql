-- Deletes a batch. Its jobs stay.
-- ?1 id
delete from sluice_batch where id = ?1

-- Closes an open batch.
-- ?1 id   ?2 now
update sluice_batch set closed_at = ?2 where id = ?1 and closed_at is null

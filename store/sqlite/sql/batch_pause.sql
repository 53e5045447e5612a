-- Stores the reason why a batch is paused.
-- ?1 id   ?2 reason (empty: not paused)
update sluice_batch set paused = ?2 where id = ?1 and paused <> ?2

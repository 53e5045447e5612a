-- Stores the decision about a batch.
-- ?1 id   ?2 complete since   ?3 succeeded since   ?4 the first death; each null: not yet
update sluice_batch set completed_at = ?2, succeeded_at = ?3, died_at = ?4 where id = ?1

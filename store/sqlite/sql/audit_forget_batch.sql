-- Deletes the batches of a level after one seal up to another.
-- ?1 level   ?2 behind seal   ?3 up to seal
delete from sluice_audit_batch where level = ?1 and seal > ?2 and seal <= ?3

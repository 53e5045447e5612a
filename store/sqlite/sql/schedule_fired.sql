-- Stores the next fire of a schedule after a fire, in the transaction that read it.
-- ?1 name   ?2 next_at or null   ?3 progress
update sluice_schedule set next_at = ?2, progress = ?3 where name = ?1

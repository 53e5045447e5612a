-- Adds the batch of a seal.
-- ?1 seal   ?2 level   ?3 body
insert into sluice_audit_batch (seal, level, body) values (?1, ?2, ?3)

-- Deletes a row of a queue's last count that the present count does not have.
-- ?1 queue   ?2 part   ?3 at
delete from sluice_wave where queue = ?1 and part = ?2 and at = ?3

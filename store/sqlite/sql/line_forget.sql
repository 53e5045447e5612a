-- Deletes a line; the next job of its tenant makes it anew.
-- ?1 queue   ?2 tenant
delete from sluice_line where queue = ?1 and tenant = ?2

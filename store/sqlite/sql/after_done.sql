-- A job need not wait for another any longer.
-- ?1 seq   ?2 seq of the other
delete from sluice_after where after_seq = ?2 and seq = ?1

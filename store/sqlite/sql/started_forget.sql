-- Deletes starts of a queue up to one instant and after another.
-- ?1 queue   ?2 up to   ?3 after
delete from sluice_started where queue = ?1 and (at <= ?2 or at > ?3)

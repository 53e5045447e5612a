-- Gives a life that an undo has ended the end time of the life before it.
-- ?1 seq   ?2 generation
update sluice_done
set finished_at = (select b.finished_at from sluice_done b where b.seq = ?1 and b.generation = ?2 - 1)
where seq = ?1 and generation = ?2

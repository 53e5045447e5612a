-- Says of a life that an undo has ended that it ended when the life before it did.
-- ?1 seq   ?2 generation
update sluice_done
set finished_at = (select b.finished_at from sluice_done b where b.seq = ?1 and b.generation = ?2 - 1)
where seq = ?1 and generation = ?2
